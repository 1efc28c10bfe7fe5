//! How a server is reached. Each connection has a transport of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use super::definition::McpDefinition;
use super::handler::Handler;
use super::http::HttpEndpoint;
use super::observed::ObservedTransport;
use super::request_error::RequestError;
use super::requests::Requests;
use super::stdio::{ProcessLink, StdioEndpoint};
use crate::fault::DefinitionFault;
use crate::{Commands, ToolSecrets};
use net::outgoing::OutgoingClient;
use values::tenant::TenantId;

/// The kind of revision of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Since 2026-07-28: no sessions, and each request stands for itself.
    Modern,
    /// Up to 2025-11-25: a session begins with `initialize`.
    Legacy,
}

/// A way to reach a server.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// Streamable HTTP.
    Http(HttpEndpoint),
    /// A process of the service.
    Stdio(StdioEndpoint),
}

/// An open connection, as the library has it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) service: RunningService<RoleClient, Handler>,
    /// The process of the server, if it is one of the service.
    pub(super) process: Option<Arc<ProcessLink>>,
}

impl Era {
    /// Returns the other kind.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Modern => Self::Legacy,
            Self::Legacy => Self::Modern,
        }
    }
}

impl Endpoint {
    /// Makes the endpoint of a definition.
    pub(super) fn of(
        definition: &McpDefinition,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
        commands: &Arc<Commands>,
    ) -> Result<Self, DefinitionFault> {
        let Some(url) = definition.url.as_deref() else {
            return StdioEndpoint::new(definition, secrets, commands).map(Self::Stdio);
        };
        HttpEndpoint::new(definition, url, secrets, client).map(Self::Http)
    }

    /// Returns whether each connection has a process.
    pub(super) fn is_process(&self) -> bool {
        matches!(self, Self::Stdio(_))
    }

    /// Opens a connection of a tenant until a time. `tasks` outlast it for a moment, and `limit` is
    /// the time of all attempts together.
    pub(super) async fn open(
        &self,
        tenant: &TenantId,
        requests: &Arc<Requests>,
        era: Era,
        (until, limit): (Instant, Duration),
        tasks: &TaskTracker,
    ) -> Result<Opened, RequestError> {
        let mode = match era {
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
            Era::Legacy => ClientLifecycleMode::Initialize,
        };
        let late = |_| Err(RequestError::Timeout(limit));
        match self {
            Self::Http(endpoint) => {
                let transport = endpoint.transport(tenant, requests);
                let served = timeout_at(until, serve(transport, requests, mode)).await;
                Ok(Opened {
                    service: served.unwrap_or_else(late)?,
                    process: None,
                })
            }
            Self::Stdio(endpoint) => {
                let started = timeout_at(until, endpoint.start(tenant, requests, tasks)).await;
                let (transport, process) = started.unwrap_or(Err(RequestError::Timeout(limit)))?;
                let served = timeout_at(until, serve(transport, requests, mode)).await;
                match served.unwrap_or_else(late) {
                    Ok(service) => Ok(Opened {
                        service,
                        process: Some(process),
                    }),
                    Err(error) => Err(process.explained_opening(error).await),
                }
            }
        }
    }

    /// Returns why a connection can never be opened, as far as that is known without an attempt.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Http(_) => None,
            Self::Stdio(endpoint) => endpoint.problem(),
        }
    }
}

/// Opens a connection over a transport.
async fn serve<T: Transport<RoleClient> + 'static>(
    transport: T,
    requests: &Arc<Requests>,
    mode: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Handler>, RequestError> {
    let handler = Handler::new(requests);
    let transport = ObservedTransport::new(transport, requests);
    let service = handler.serve_with_lifecycle(transport, mode).boxed().await;
    service.map_err(|error| RequestError::of_opening(&error))
}
