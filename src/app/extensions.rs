//! What a program that embeds the service adds to it. Data only.

use std::sync::Arc;

use crate::agent::ports::Tool;

/// What is not part of the service itself; by default nothing.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    /// Tools beside the built-in ones. Agents name them like those, so their names must differ.
    pub tools: Vec<Arc<dyn Tool>>,
}
