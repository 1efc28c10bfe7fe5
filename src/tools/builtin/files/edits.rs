//! Ends a change of the files.

use crate::agent::ports::ToolError;
use crate::environment::{EnvironmentError, WorkspaceEdit};
use crate::workspace::Tree;

use super::paths::explained;

/// Publishes the changed files. A call ends right after this (see
/// [`environment_tool`](crate::tools::builtin::environment_tool)).
pub(super) async fn finish(edit: WorkspaceEdit<'_>, changed: Tree) -> Result<(), ToolError> {
    let before = edit.tree.clone();
    match edit.finish(changed).await {
        Ok(()) => Ok(()),
        Err(EnvironmentError::Workspace(error)) => Err(explained(&before, error).await),
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}
