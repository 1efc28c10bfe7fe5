//! `GET /v1/service`: what the service has, by names alone. Never shows a secret, an address or a
//! path of the host.

use std::future::{Ready, ready};

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Call;
use super::parameters::NoParameters;
use crate::run::settings::ProcessRole;
use agent::ports::{ProviderInfo, ToolServerInfo};
use values::clock::Timestamp;

/// The parts of a build that a first run does not need, with whether this build has them.
const FEATURES: [(&str, bool); 3] = [
    ("bedrock", models::HAS_BEDROCK),
    ("object-store", store::objects::HAS_CLIENTS),
    ("redis", board::HAS_REDIS),
];

/// The service, as the process that responds sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Service {
    /// The version of the program.
    version: &'static str,
    /// The features of the build: `bedrock`, `object-store`, `redis`.
    #[schema(value_type = Vec<String>)]
    features: Vec<&'static str>,
    /// When the process began to serve.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    started_at: Timestamp,
    /// The role of the process: `api` leaves queued runs to workers, `all` executes them, too.
    role: &'static str,
    /// The engine of the store: `postgres` or `sqlite`.
    store: &'static str,
    /// Whether replicas share their live runs through Redis.
    redis: bool,
    /// The providers of models, by name.
    providers: Vec<ServiceProvider>,
    /// The names of the tools that agents can have, without those of MCP servers.
    tools: Vec<String>,
    /// The MCP servers that agents can have, by name.
    mcp_servers: Vec<ServiceMcpServer>,
    /// The address of the guides.
    docs: &'static str,
    /// The address of the description of the API.
    openapi: &'static str,
}

/// A provider of models.
#[derive(Debug, Serialize, ToSchema)]
struct ServiceProvider {
    /// The name before the slash of a model's name.
    name: String,
    /// The protocol, as the configuration names it.
    kind: &'static str,
    /// Whether its credentials are there, or it needs none.
    has_credentials: bool,
    /// The models that the operator has named; empty for any.
    models: Vec<String>,
}

/// An MCP server.
#[derive(Debug, Serialize, ToSchema)]
struct ServiceMcpServer {
    /// Its name.
    name: String,
    /// What is known of it without a request: `connected`, `idle`, `failed` (the tenant's last
    /// attempt to connect), or `unusable` (its command can't run here).
    state: &'static str,
}

/// Shows the version of the service, and the names of what it has.
#[utoipa::path(get, path = "/v1/service", tag = "service", responses(
    (status = 200, description = "The service", body = Service),
))]
pub(super) fn get_service(call: Call, _: NoParameters) -> Ready<Json<Service>> {
    ready(Json(call.into()))
}

impl From<Call> for Service {
    fn from(call: Call) -> Self {
        let runs = &call.api.runs;
        let features = FEATURES.into_iter().filter(|(_, is_built)| *is_built);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            features: features.map(|(name, _)| name).collect(),
            started_at: call.api.started_at,
            role: match runs.queue.role {
                ProcessRole::Api => "api",
                ProcessRole::Worker => "worker",
                ProcessRole::All => "all",
            },
            store: runs.store.engine(),
            redis: runs.board.is_shared(),
            providers: runs.models.providers().into_iter().map(ServiceProvider::from).collect(),
            tools: runs.tools.names(),
            mcp_servers: runs
                .servers
                .list(&call.tenant)
                .into_iter()
                .map(ServiceMcpServer::from)
                .collect(),
            docs: "/docs/guides",
            openapi: "/openapi.json",
        }
    }
}

impl From<ProviderInfo> for ServiceProvider {
    fn from(provider: ProviderInfo) -> Self {
        let ProviderInfo {
            name,
            kind,
            // Addresses may tell of the operator's network.
            server: _,
            has_credentials,
            models,
        } = provider;
        Self {
            name,
            kind,
            has_credentials,
            models,
        }
    }
}

impl From<ToolServerInfo> for ServiceMcpServer {
    fn from(ToolServerInfo { name, state }: ToolServerInfo) -> Self {
        Self {
            name,
            state: state.as_str(),
        }
    }
}
