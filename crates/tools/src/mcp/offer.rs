//! Puts the tools of a run together: names, patterns and pinned definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::definition::OnChange;
use super::extras::extras;
use super::listing::{ListedTool, Listing};
use super::naming::tool_name;
use super::request_error::RequestError;
use super::server::McpServer;
use super::tool::McpTool;
use super::unavailable::UnavailableTool;
use agent::ports::{OfferedTools, ServedTool, Tool};
use values::session::{PinnedTool, ToolPins};
use values::tenant::TenantId;

/// The tools of a run, as they are put together.
#[derive(Debug)]
pub(super) struct Offer<'a> {
    tenant: &'a TenantId,
    names: BTreeSet<String>,
    offered: OfferedTools,
}

impl<'a> Offer<'a> {
    /// Begins with the definitions that the session has accepted.
    pub(super) fn new(tenant: &'a TenantId, pins: ToolPins) -> Self {
        Self {
            tenant,
            names: BTreeSet::new(),
            offered: OfferedTools {
                tools: Vec::new(),
                pins,
                changed: BTreeMap::new(),
                left_out: BTreeMap::new(),
            },
        }
    }

    pub(super) fn into_tools(self) -> OfferedTools {
        self.offered
    }

    /// Adds the tools of a server. A session accepts all that it finds when it first uses the
    /// server. Later, a tool that is new or has changed is treated as the server's policy says.
    pub(super) fn add(&mut self, server: &Arc<McpServer>, listing: &Listing) {
        let definition = &server.definition;
        if !listing.left_out.is_empty() {
            let left_out = listing.left_out.clone();
            self.offered.left_out.insert(definition.name.clone(), left_out);
        }
        let is_first = !self.offered.pins.knows(&definition.name);
        self.offered.pins.begin(&definition.name);
        if definition.on_change == OnChange::Accept {
            // Otherwise a server that renames its tools would make the sessions ever larger.
            let is_listed = |name: &str| listing.tools.iter().any(|tool| tool.name == name);
            self.offered.pins.retain(&definition.name, is_listed);
        }
        for tool in listing.tools.iter().filter(|tool| definition.allows(&tool.name)) {
            self.add_tool(server, tool, is_first);
        }
        for tool in extras(server, listing, self.tenant) {
            self.push(server, tool);
        }
    }

    /// Adds the tool that says that a server can't be used.
    pub(super) fn add_unavailable(&mut self, server: &Arc<McpServer>, error: &RequestError) {
        let tool = UnavailableTool::of_server(&server.definition, error);
        self.push(server, Arc::new(tool));
    }

    fn add_tool(&mut self, server: &Arc<McpServer>, tool: &ListedTool, is_first: bool) {
        let definition = &server.definition;
        let name = tool_name(&definition.prefix(), &tool.name);
        let now = PinnedTool {
            server: definition.name.clone(),
            tool: tool.name.clone(),
            definition: tool.definition,
        };
        let is_accepted = is_first || self.offered.pins.accepts(&now);
        match definition.on_change {
            OnChange::Refuse if !is_accepted => {
                let tool = UnavailableTool::changed(&name, &definition.name);
                self.push(server, Arc::new(tool));
                return;
            }
            OnChange::Ask if !is_accepted => {
                let tool = McpTool::new(server, self.tenant, name.clone(), tool);
                if self.push(server, Arc::new(tool)) {
                    self.offered.changed.insert(name, now);
                }
                return;
            }
            _ => self.offered.pins.pin(now),
        }
        let tool = McpTool::new(server, self.tenant, name, tool);
        self.push(server, Arc::new(tool));
    }

    /// Adds a tool unless another one has its name. Returns whether it was added.
    fn push(&mut self, server: &Arc<McpServer>, tool: Arc<dyn Tool>) -> bool {
        let (server, name) = (server.definition.name.as_str(), &tool.spec().name);
        if !self.names.insert(name.clone()) {
            tracing::warn!(
                server,
                tool = name,
                "a tool of an MCP server is left out, since another tool has its name"
            );
            return false;
        }
        self.offered.tools.push(ServedTool {
            server: server.into(),
            tool,
        });
        true
    }
}
