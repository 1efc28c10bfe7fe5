//! Extensions that a program adds when it embeds the service. Data only.

use std::path::PathBuf;
use std::sync::Arc;

use agent::ports::Tool;

/// Additions to the service; by default none.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    /// Tools in addition to the built-in ones. Agents name both alike, so the names must differ.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The program that the sandbox starts with the argument `sandbox-exec`; by default the running
    /// one. A program that does not call [`main_with`](crate::cli::main_with) must name another.
    pub sandbox_helper: Option<PathBuf>,
}
