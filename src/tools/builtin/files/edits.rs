//! Begins and ends what tools do with the files.

use crate::agent::ports::{ToolContext, ToolError};
use crate::environment::{EnvironmentError, WorkspaceEdit};
use crate::workspace::Tree;

use super::paths::explained;

/// Returns the files as they are now, with what background jobs have written.
pub(super) async fn current(context: &ToolContext) -> Result<Tree, ToolError> {
    let refreshed = context.environment.refresh().await;
    refreshed.map_err(|error| ToolError::new(error.to_string()))?;
    Ok(context.environment.tree())
}

/// Begins a change of the files as they are now.
pub(super) async fn begin(context: &ToolContext) -> Result<WorkspaceEdit<'_>, ToolError> {
    let edit = context.environment.edit().await;
    edit.map_err(|error| ToolError::new(error.to_string()))
}

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
