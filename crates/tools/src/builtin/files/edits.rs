//! Begins and ends edits of the files by tools.

use agent::ports::{ToolContext, ToolError};
use workspace::environment::{EnvironmentError, WorkspaceEdit};
use workspace::{FilePath, Tree, WorkspaceLimits};

use super::paths::explained;

/// Returns the current files, with the changes of background jobs.
pub(super) async fn current(context: &ToolContext) -> Result<Tree, ToolError> {
    let refreshed = context.environment.refresh().await;
    refreshed.map_err(|error| ToolError::new(error.to_string()))?;
    Ok(context.environment.tree())
}

/// Returns files with the entries at an ephemeral path, for a reader. `is_read` decides by path and
/// size which files it reads.
pub(super) async fn with_ephemeral(
    context: &ToolContext,
    tree: &Tree,
    path: Option<&FilePath>,
    is_read: fn(&FilePath, u64) -> bool,
) -> Result<Tree, ToolError> {
    let Some(path) = path else { return Ok(tree.clone()) };
    // Files that are no part of the session do not count for its limits.
    let tree = tree.clone().within(WorkspaceLimits::CEILINGS);
    let found = context.environment.with_ephemeral(&tree, path, is_read).await;
    found.map_err(|error| ToolError::new(error.to_string()))
}

/// The same for a writer. Changed files become part of the session, with the symlinks on the path,
/// and nothing else.
pub(super) async fn with_ephemeral_file(
    edit: &WorkspaceEdit<'_>,
    tree: &Tree,
    path: &FilePath,
) -> Result<Tree, ToolError> {
    let found = edit.with_ephemeral(tree, path).await;
    found.map_err(|error| ToolError::new(error.to_string()))
}

/// Begins a change of the files as they are now.
pub(super) async fn begin(context: &ToolContext) -> Result<WorkspaceEdit<'_>, ToolError> {
    let edit = context.environment.edit().await;
    edit.map_err(|error| ToolError::new(error.to_string()))
}

/// Publishes the changed files. A call ends right after this (see
/// [`environment_tool`](crate::builtin::environment_tool)).
pub(super) async fn finish(edit: WorkspaceEdit<'_>, changed: Tree) -> Result<(), ToolError> {
    let before = edit.tree.clone();
    match edit.finish(changed).await {
        Ok(()) => Ok(()),
        Err(EnvironmentError::Workspace(error)) => explained(&before, Err(error)).await,
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}
