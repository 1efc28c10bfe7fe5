//! Extensions that a program adds when it embeds the service. Data only.

use std::sync::Arc;

use crate::agent::ports::Tool;

/// Additions to the service; by default none.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    /// Tools in addition to the built-in ones. Agents name both alike, so the names must differ.
    pub tools: Vec<Arc<dyn Tool>>,
}
