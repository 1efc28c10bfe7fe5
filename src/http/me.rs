//! `GET /v1/me`: the caller, and what it may do.

use std::future::{Ready, ready};

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Call;
use super::parameters::NoParameters;
use crate::tokens::Principal;
use store::keys::{ApiKeyRecord, Scope};
use values::clock::Timestamp;
use values::ids::ApiKeyId;
use values::json::Object;
use values::limits::{Pattern, RunLimits, TenantLimits};
use values::usage::Cost;

/// The caller of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Caller {
    /// The tenant whose data the caller reads and writes.
    tenant: String,
    /// Whether requests need credentials. They do once a first API key was made, or with an
    /// identity provider or names of client certificates in the configuration.
    requires_key: bool,
    /// What the caller may do: `runs:write`, `sessions:read`, `admin`, `metrics`, `audit`. The
    /// scope `admin` includes all but `metrics`.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<&'static str>,
    /// The API key; null for a token and for a client certificate, and as long as requests need no
    /// credentials.
    key: Option<CallerKey>,
    /// The token of an identity provider; null without one.
    token: Option<CallerToken>,
    /// The limits of the tenant.
    limits: CallerLimits,
}

/// An API key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
struct CallerKey {
    /// Names the key.
    key_id: ApiKeyId,
    /// The purpose, in the operator's words.
    label: String,
    /// When it was created.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    created_at: Timestamp,
    /// The limits of each run that callers with this key start, within those of the tenant.
    runs: CallerRunLimits,
}

/// A token of an identity provider.
#[derive(Debug, Serialize, ToSchema)]
struct CallerToken {
    /// The identity provider.
    issuer: String,
    /// The subject.
    sub: String,
    /// The client to which the token was issued.
    azp: Option<String>,
    /// The party that acts for the subject.
    act: Option<Object>,
    /// When the token expires.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    expires_at: Timestamp,
    /// The limits of each run that callers with this token start, within those of the tenant.
    runs: CallerRunLimits,
}

/// The limits of a tenant; null where there is none.
#[derive(Debug, Serialize, ToSchema)]
struct CallerLimits {
    /// The limits of each run.
    runs: CallerRunLimits,
    /// The most light runs in progress in one process.
    light_runs: Option<u32>,
    /// The most runs that wait in the queue.
    queued_runs: Option<u32>,
    /// The most readers in one process that follow runs or changes, or wait for runs.
    readers: Option<u32>,
    /// The most bytes of the files of all sessions, each content counted once.
    max_stored_file_bytes: Option<u64>,
    /// The requests per second.
    requests_per_second: Option<u32>,
    /// The most requests at once.
    request_burst: Option<u32>,
}

/// The limits of each run; null where there is none.
#[derive(Debug, Serialize, ToSchema)]
struct CallerRunLimits {
    /// The most steps of an agent.
    max_steps: Option<u32>,
    /// The most tokens, input and output together.
    max_tokens: Option<u64>,
    /// The most seconds from start to end.
    max_seconds: Option<u32>,
    /// The most US dollars.
    max_cost: Option<Cost>,
    /// The most US dollars of all runs in a day.
    max_cost_per_day: Option<Cost>,
    /// The most US dollars of all runs in a month.
    max_cost_per_month: Option<Cost>,
    /// Patterns of the names of the allowed agents; empty allows all.
    agents: Vec<String>,
    /// Patterns of the allowed models, as `PROVIDER/MODEL`; empty allows all.
    models: Vec<String>,
    /// Patterns of the allowed providers; empty allows all.
    providers: Vec<String>,
}

/// Shows who the caller is, and what it may do.
#[utoipa::path(get, path = "/v1/me", tag = "service", responses(
    (status = 200, description = "The caller", body = Caller),
), security(("api_key" = [])))]
pub(super) fn get_me(call: Call, _: NoParameters) -> Ready<Json<Caller>> {
    ready(Json(call.into()))
}

impl From<Call> for Caller {
    fn from(call: Call) -> Self {
        let limits = call.api.runs.limits.of(&call.tenant);
        Self {
            tenant: call.tenant.to_string(),
            requires_key: call.needs_credentials(),
            scopes: call.scopes().map(Scope::as_str).collect(),
            key: call.key().map(CallerKey::from),
            token: call.principal().map(CallerToken::from),
            limits: CallerLimits::from(&**limits),
        }
    }
}

impl From<&ApiKeyRecord> for CallerKey {
    fn from(key: &ApiKeyRecord) -> Self {
        Self {
            key_id: key.key_id,
            label: key.label.clone(),
            created_at: key.created_at,
            runs: CallerRunLimits::from(&key.limits),
        }
    }
}

impl From<&Principal> for CallerToken {
    fn from(principal: &Principal) -> Self {
        Self {
            issuer: principal.issuer.to_string(),
            sub: principal.subject.clone(),
            azp: principal.client.clone(),
            act: principal.actor.clone(),
            expires_at: principal.expires_at,
            runs: CallerRunLimits::from(&principal.limits),
        }
    }
}

impl From<&TenantLimits> for CallerLimits {
    fn from(limits: &TenantLimits) -> Self {
        Self {
            runs: CallerRunLimits::from(&limits.runs),
            light_runs: limits.light_runs,
            queued_runs: limits.queued_runs,
            readers: limits.readers,
            max_stored_file_bytes: limits.stored_file_bytes,
            requests_per_second: limits.requests.map(|rate| rate.per_second.get()),
            request_burst: limits.requests.map(|rate| rate.burst.get()),
        }
    }
}

impl From<&RunLimits> for CallerRunLimits {
    fn from(limits: &RunLimits) -> Self {
        let texts = |patterns: &[Pattern]| patterns.iter().map(Pattern::to_string).collect();
        Self {
            max_steps: limits.max_steps,
            max_tokens: limits.max_tokens,
            max_seconds: limits.max_seconds,
            max_cost: limits.max_cost,
            max_cost_per_day: limits.spend.day,
            max_cost_per_month: limits.spend.month,
            agents: texts(&limits.agents),
            models: texts(&limits.models),
            providers: texts(&limits.providers),
        }
    }
}
