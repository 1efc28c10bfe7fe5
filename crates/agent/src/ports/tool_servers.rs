//! The port to servers that have tools, such as MCP servers. Agents list servers by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::tool::Tool;
use values::session::{PinnedTool, ToolPins};
use values::tenant::TenantId;

/// No server has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no MCP server is named {name:?}; {}", known_names(known))]
pub struct UnknownToolServer {
    pub name: String,
    /// The names that exist, joined.
    pub known: String,
}

fn known_names(known: &str) -> String {
    match known {
        "" => "none is configured".to_owned(),
        known => format!("known are {known}"),
    }
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub struct ServedTool {
    pub server: Arc<str>,
    pub tool: Arc<dyn Tool>,
}

/// The tools of servers for one run.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools {
    /// The tools, in a stable order, each with a name of its own.
    pub tools: Vec<ServedTool>,
    /// The accepted definitions, with those that are new to the session.
    pub pins: ToolPins,
    /// The tools whose definition has changed and whose calls need an approval, by name.
    pub changed: BTreeMap<String, PinnedTool>,
    /// The listed tools that can't be used, in words, by server.
    pub left_out: BTreeMap<String, Vec<String>>,
}

/// What is known of a server without a request to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolServerState {
    /// The tenant has a connection to it.
    Connected,
    /// The tenant has no connection to it. The next run that needs one opens it.
    Idle,
    /// The last attempt of the tenant to connect to it has failed.
    Failed,
    /// It can never be used, for example since commands can't run here.
    Unusable,
}

/// A server, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServerInfo {
    pub name: String,
    pub state: ToolServerState,
}

impl ToolServerState {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Idle => "idle",
            Self::Failed => "failed",
            Self::Unusable => "unusable",
        }
    }
}

/// Finds the tools of servers.
pub trait ToolServers: Send + Sync + fmt::Debug {
    /// Checks that servers of these names exist.
    fn check(&self, names: &[String]) -> Result<(), UnknownToolServer>;

    /// Lists all servers by name, as the tenant finds them. Sends no request.
    fn list(&self, tenant: &TenantId) -> Vec<ToolServerInfo>;

    /// Returns whether one of the servers may have a tool of this name.
    fn may_serve(&self, names: &[String], tool: &str) -> bool;

    /// Finds the tools of the servers for a run, in bounded time. A server that can't be used has
    /// one tool, which says so. `pins` are the definitions that the session has accepted.
    fn offered<'a>(
        &'a self,
        tenant: &'a TenantId,
        names: &'a [String],
        pins: &'a ToolPins,
    ) -> BoxFuture<'a, OfferedTools>;
}
