//! The servers that agents list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::definition::McpDefinition;
use super::offer::Offer;
use super::server::McpServer;
use crate::fault::DefinitionFault;
use crate::{Commands, ToolSecrets};
use agent::ports::{OfferedTools, ToolServerInfo, ToolServers, UnknownToolServer};
use net::outgoing::OutgoingClient;
use values::session::ToolPins;
use values::tenant::TenantId;

/// How long closing the connections may take.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The configured servers, by name.
#[derive(Debug, Default)]
pub struct McpServers {
    servers: BTreeMap<String, Arc<McpServer>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl McpServers {
    /// Adds a server. `client` has the rules of the definition, and `commands` runs its process.
    pub fn add(
        &mut self,
        definition: McpDefinition,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
        commands: &Arc<Commands>,
    ) -> Result<(), DefinitionFault> {
        let name = definition.name.clone();
        let (tasks, stop) = (self.tasks.clone(), self.stop.clone());
        let server = McpServer::new(definition, (secrets, client, commands), tasks, stop)?;
        if self.servers.contains_key(&name) {
            return Err(DefinitionFault::new(
                "name",
                format!("another file defines the server {name:?}"),
            ));
        }
        self.servers.insert(name, Arc::new(server));
        Ok(())
    }

    /// Returns the servers that can never be used, with the reason.
    pub fn problems(&self) -> Vec<String> {
        let problem = |(name, server): (&String, &Arc<McpServer>)| {
            let problem = server.problem()?;
            Some(format!("the MCP server {name:?}: `command`: {problem}"))
        };
        self.servers.iter().filter_map(problem).collect()
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(CLOSE_PATIENCE, self.tasks.wait()).await.is_err() {
            tracing::warn!("the connections to MCP servers did not close in time");
        }
    }

    async fn offer(&self, tenant: &TenantId, names: &[String], pins: &ToolPins) -> OfferedTools {
        let servers: Vec<_> = names.iter().filter_map(|name| self.servers.get(name)).collect();
        let listings = join_all(servers.iter().map(|server| server.listing(tenant))).await;
        let mut offer = Offer::new(tenant, pins.clone());
        for (server, listing) in servers.into_iter().zip(listings) {
            match listing {
                Ok(listing) => offer.add(server, &listing),
                Err(error) => offer.add_unavailable(server, &error),
            }
        }
        offer.into_tools()
    }
}

impl ToolServers for McpServers {
    fn check(&self, names: &[String]) -> Result<(), UnknownToolServer> {
        let unknown = names.iter().find(|name| !self.servers.contains_key(*name));
        unknown.map_or(Ok(()), |name| {
            let known: Vec<_> = self.servers.keys().map(String::as_str).collect();
            Err(UnknownToolServer {
                name: name.clone(),
                known: known.join(", "),
            })
        })
    }

    fn list(&self, tenant: &TenantId) -> Vec<ToolServerInfo> {
        let info = |(name, server): (&String, &Arc<McpServer>)| ToolServerInfo {
            name: name.clone(),
            state: server.state(tenant),
        };
        self.servers.iter().map(info).collect()
    }

    fn may_serve(&self, names: &[String], tool: &str) -> bool {
        let mut servers = names.iter().filter_map(|name| self.servers.get(name));
        servers.any(|server| tool.starts_with(&server.definition.prefix()))
    }

    fn offered<'a>(
        &'a self,
        tenant: &'a TenantId,
        names: &'a [String],
        pins: &'a ToolPins,
    ) -> BoxFuture<'a, OfferedTools> {
        Box::pin(self.offer(tenant, names, pins))
    }
}
