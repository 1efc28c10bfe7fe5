//! The offers of a server, as it has listed them. Data only.

use std::sync::Arc;
use std::time::Duration;

use values::json::{JsonSchema, Value};
use values::session::Hash;

/// The offers of a server.
#[derive(Debug)]
pub(super) struct Listing {
    /// The usable tools, by name.
    pub(super) tools: Vec<ListedTool>,
    /// The listed parts that can't be used, with the reasons.
    pub(super) left_out: Vec<String>,
    /// Whether the server has resources.
    pub(super) has_resources: bool,
    /// Whether the server has prompts.
    pub(super) has_prompts: bool,
    /// How long the list may be used.
    pub(super) lifetime: Duration,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub(super) struct ListedTool {
    /// The name that the server gives it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
    pub(super) schema: Arc<JsonSchema>,
    pub(super) output_schema: Option<Arc<JsonSchema>>,
    pub(super) read_only: bool,
    pub(super) idempotent: bool,
    pub(super) destructive: bool,
    /// The hash of the whole definition.
    pub(super) definition: Hash,
}
