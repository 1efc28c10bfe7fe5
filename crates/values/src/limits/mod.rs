//! Limits that operators set for tenants and API keys. They bound the spending of a run, its agents
//! and models, and the concurrent use of a tenant.
//!
//! `run/request/allowance.rs` applies the limits of runs. `TenantShares` counts the current use of
//! a tenant in this process. The transaction that accepts a run counts the tenant's waiting runs.
//! It holds a lock of the tenant, so concurrent requests never exceed the limit.

mod pattern;
mod shares;
mod spend;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

pub use self::pattern::{ParsePatternError, Pattern};
pub use self::shares::{TenantShare, TenantShares};
pub use self::spend::{SpendLimit, SpendLimits, SpendPeriod, SpendScope, midnight};
use crate::tenant::TenantId;
use crate::usage::Cost;

/// The limits of all tenants.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    each_tenant: Arc<TenantLimits>,
    tenants: BTreeMap<TenantId, Arc<TenantLimits>>,
}

/// The limits of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// The limits of each of its runs.
    pub runs: RunLimits,
    /// The most light runs in progress in one process.
    pub light_runs: Option<u32>,
    /// The most runs that wait in the queue.
    pub queued_runs: Option<u32>,
    /// The most readers in one process that follow runs or changes, or wait for runs.
    pub readers: Option<u32>,
    /// The most bytes of the files of all its sessions, each content counted once.
    pub stored_file_bytes: Option<u64>,
    /// The rate of its requests.
    pub requests: Option<RequestRate>,
    /// What the runs of each of these agents together may spend.
    pub agent_spend: BTreeMap<String, SpendLimits>,
    /// Where its days and months begin.
    pub time_zone: Tz,
    /// Who is told that most of a limit of spending is spent.
    pub spend_webhook: Option<SpendWebhook>,
}

/// Receives messages about limits of spending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendWebhook {
    /// The address.
    pub url: String,
    /// The name of the secret that signs the messages; `None` for unsigned ones.
    pub secret: Option<String>,
}

/// The limits of each run. An absent limit does not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// The most steps of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The most tokens, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The most seconds from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u32>,
    /// The most US dollars. With this limit, models without a price are not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    /// The names of the allowed agents; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Pattern>,
    /// The allowed models, as `PROVIDER/MODEL`; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Pattern>,
    /// The allowed providers; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<Pattern>,
    /// What all runs of the tenant, or of the API key, together may spend.
    #[serde(skip_serializing_if = "SpendLimits::is_empty")]
    pub spend: SpendLimits,
}

/// How many requests a tenant may make: a burst at once, then a number per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRate {
    /// The requests per second.
    pub per_second: NonZeroU32,
    /// The most requests at once.
    pub burst: NonZeroU32,
}

/// The rest of a tenant's rate after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStanding {
    /// The rate that is set for the tenant.
    pub rate: RequestRate,
    /// How many requests the tenant may make at once now.
    pub remaining: u32,
    /// How long the tenant must wait before it repeats this request; none if it is allowed.
    pub wait: Option<Duration>,
}

impl Limits {
    /// Makes limits from the limits of single tenants and from `each_tenant`, which applies to all
    /// others.
    pub fn new(each_tenant: TenantLimits, tenants: impl IntoIterator<Item = (TenantId, TenantLimits)>) -> Self {
        let tenants = tenants.into_iter();
        Self {
            each_tenant: Arc::new(each_tenant),
            tenants: tenants.map(|(tenant, limits)| (tenant, Arc::new(limits))).collect(),
        }
    }

    /// Returns all rates that are set.
    pub fn rates(&self) -> impl Iterator<Item = RequestRate> {
        self.all().filter_map(|limits| limits.requests)
    }

    /// Returns the limits of all tenants that have their own, and those of all others.
    pub fn all(&self) -> impl Iterator<Item = &TenantLimits> {
        self.tenants.values().chain([&self.each_tenant]).map(|limits| &**limits)
    }

    /// Returns the limits of the tenant.
    pub fn of(&self, tenant: &TenantId) -> &Arc<TenantLimits> {
        self.tenants.get(tenant).unwrap_or(&self.each_tenant)
    }
}

impl RunLimits {
    /// Returns whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
