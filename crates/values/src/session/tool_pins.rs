//! The definitions of tools of servers that a session has accepted, by their hashes.
//!
//! A server may change a tool after a session has accepted it. The pins make each change visible.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use crate::json::canonical_bytes;

/// The accepted definitions, by server and tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = BTreeMap<String, BTreeMap<String, Hash>>)]
pub struct ToolPins(BTreeMap<String, BTreeMap<String, Hash>>);

/// The definition of a tool that a server has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PinnedTool {
    /// The server.
    pub server: String,
    /// The name that the server gives the tool.
    pub tool: String,
    /// The hash of the definition.
    pub definition: Hash,
}

impl ToolPins {
    /// Returns whether no definition is pinned.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the session has used the server before.
    pub fn knows(&self, server: &str) -> bool {
        self.0.contains_key(server)
    }

    /// Returns whether this definition of the tool is accepted.
    pub fn accepts(&self, tool: &PinnedTool) -> bool {
        let definitions = self.0.get(&tool.server);
        definitions.and_then(|definitions| definitions.get(&tool.tool)) == Some(&tool.definition)
    }

    /// Notes that the session uses the server, even if the server has no tools.
    pub fn begin(&mut self, server: &str) {
        self.0.entry(server.to_owned()).or_default();
    }

    /// Accepts a definition.
    pub fn pin(&mut self, tool: PinnedTool) {
        let definitions = self.0.entry(tool.server).or_default();
        definitions.insert(tool.tool, tool.definition);
    }

    /// Removes the pins of those tools of a server for which the function returns false.
    pub fn retain(&mut self, server: &str, is_retained: impl Fn(&str) -> bool) {
        if let Some(definitions) = self.0.get_mut(server) {
            definitions.retain(|tool, _| is_retained(tool));
        }
    }
}

/// Hashes the canonical JSON of the definition of a tool.
pub fn hash_tool_definition<T: Serialize>(definition: &T) -> Hash {
    // Only maps with other keys than texts can't be written, and definitions have none.
    let bytes = canonical_bytes(definition).unwrap_or_default();
    Hash::from(blake3::derive_key("agent-runtime tool definition v1", &bytes))
}
