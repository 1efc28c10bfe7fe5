//! `apply_patch`: changes of several files in one of the formats that models know, all or none.

mod apply;
mod envelope;
mod header;
mod locate;
mod model;
mod section;
mod unified;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use self::apply::{Patched, apply};
use self::envelope::{is_envelope, read_envelope};
use self::locate::Work;
use self::model::{FileChange, FilePatch, Hunk};
use self::unified::{is_unified, read_unified};
use super::edits::{begin, finish, with_ephemeral_file};
use super::paths::{executable, explained, file_path};
use super::text::{BYTE_ORDER_MARK, counted, line_count};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput, ToolSpec};
use tasks::off_thread::{by_size, off_thread};
use values::json::Value;
use workspace::environment::WorkspaceEdit;
use workspace::{FilePath, Tree};

/// The longest patch, in characters.
const MAX_PATCH_LENGTH: usize = 1 << 20;
/// The most files of one patch.
const MAX_FILES: usize = 200;
/// A patch of many large files takes a while.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug, Deserialize)]
struct Arguments {
    patch: String,
}

/// Makes the tool.
pub(super) fn apply_patch() -> FunctionTool {
    let properties = json!({
        "patch": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATCH_LENGTH,
            "description": "The whole patch, in one of the two formats.",
        },
    });
    let description = "Changes, adds, deletes or renames several files of the workspace with one patch. All of it \
                       happens or nothing. Two formats are allowed. A unified diff (--- a/NAME, +++ b/NAME, @@ \
                       -1,3 +1,4 @@), as git diff writes it. Or: *** Begin Patch, then for each file *** Add File: \
                       NAME, *** Update File: NAME (and perhaps *** Move to: NAME) or *** Delete File: NAME, with \
                       its hunks, then *** End Patch. A hunk begins with @@, and each of its lines with a space, - \
                       or +. Lines with a space or - must be in the file exactly. Line numbers may be wrong. Give \
                       about three lines of context around each change.";
    let spec = ToolSpec {
        timeout: Some(TIMEOUT),
        ..environment_tool("apply_patch", Effect::Overwrites, description, properties, &["patch"])
    };
    FunctionTool::new(spec, |arguments, context| Box::pin(patch(arguments, context)))
}

async fn patch(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Arguments { patch } = read_arguments(arguments)?;
    let tree = context.environment.tree();
    let files = by_size(tree.tenant(), patch.len() as u64, move || read_patch(&patch)).await?;
    let edit = begin(context).await?;
    let mut patching = Patching {
        edit: &edit,
        tree: edit.tree.clone(),
        work: Work::default(),
        report: String::new(),
    };
    for file in files {
        let path = file.path.clone();
        patching.patch(file).await.map_err(|error| {
            let message = format!("nothing was patched, because of {path}: {}", error.message);
            ToolError { message, ..error }
        })?;
    }
    let Patching { tree, report, .. } = patching;
    finish(edit, tree).await?;
    Ok(ToolOutput::text(format!("Patched:{report}")))
}

/// Reads a patch in either format.
fn read_patch(patch: &str) -> Result<Vec<FilePatch>, ToolError> {
    let patch = patch.strip_prefix(BYTE_ORDER_MARK).unwrap_or(patch);
    let read = if is_envelope(patch) {
        read_envelope(patch)
    } else if is_unified(patch) {
        read_unified(patch)
    } else {
        let message = "this is no patch: begin it with `*** Begin Patch`, or with `--- a/NAME` and `+++ b/NAME`";
        return Err(ToolError::new(message));
    };
    let files = read.map_err(|error| ToolError::new(error.0))?;
    match files.len() {
        0 => Err(ToolError::new("the patch has no files")),
        1..=MAX_FILES => Ok(files),
        count => {
            let message = format!("the patch has {count} files, more than the {MAX_FILES} of one call; split it");
            Err(ToolError::new(message))
        }
    }
}

/// A patch that is being applied to a tree.
struct Patching<'a> {
    edit: &'a WorkspaceEdit<'a>,
    /// The files with all changes so far.
    tree: Tree,
    work: Work,
    /// The result for the model: a line for each file.
    report: String,
}

impl Patching<'_> {
    async fn patch(&mut self, file: FilePatch) -> Result<(), ToolError> {
        let path = file_path(&self.tree, &file.path).await?;
        self.tree = with_ephemeral_file(self.edit, &self.tree, &path).await?;
        match file.change {
            FileChange::Add { content, is_executable } => self.add(&path, content, is_executable).await,
            FileChange::Delete { hunks } => self.delete(&path, hunks).await,
            FileChange::Update {
                hunks,
                new_path,
                is_executable,
            } => {
                let new_path = match new_path {
                    Some(new_path) => {
                        let new_path = file_path(&self.tree, &new_path).await?;
                        self.tree = with_ephemeral_file(self.edit, &self.tree, &new_path).await?;
                        Some(new_path)
                    }
                    None => None,
                };
                self.update(&path, hunks, new_path.filter(|new| *new != path), is_executable)
                    .await
            }
        }
    }

    async fn add(&mut self, path: &FilePath, content: String, is_executable: bool) -> Result<(), ToolError> {
        self.check_free(path).await?;
        let lines = counted(line_count(content.as_bytes()), "line");
        self.write(path, Bytes::from(content), is_executable).await?;
        self.note(format_args!("added {path} ({lines})"));
        Ok(())
    }

    async fn delete(&mut self, path: &FilePath, hunks: Vec<Hunk>) -> Result<(), ToolError> {
        let bytes = self.read(path).await?;
        if !hunks.is_empty() {
            let left = self.apply(bytes, hunks).await?;
            if !left.bytes.is_empty() {
                let lines = counted(line_count(&left.bytes), "line");
                let message = format!("the patch deletes the file, but its hunks do not remove {lines} of it");
                return Err(ToolError::new(message));
            }
        }
        self.remove(path).await?;
        self.note(format_args!("deleted {path}"));
        Ok(())
    }

    async fn update(
        &mut self,
        path: &FilePath,
        hunks: Vec<Hunk>,
        new_path: Option<FilePath>,
        is_executable: Option<bool>,
    ) -> Result<(), ToolError> {
        let bytes = self.read(path).await?;
        let before = explained(&self.tree, executable(&self.tree, path).await).await?;
        let patched = self.apply(bytes, hunks).await?;
        let to = new_path.as_ref().unwrap_or(path);
        if new_path.is_some() {
            self.check_free(to).await?;
            self.remove(path).await?;
        }
        self.write(
            to,
            Bytes::from(patched.bytes),
            is_executable.or(before).unwrap_or_default(),
        )
        .await?;
        let lines = format!("+{} -{}", patched.added, patched.removed);
        match new_path {
            Some(to) => self.note(format_args!("renamed {path} to {to} ({lines})")),
            None => self.note(format_args!("updated {path} ({lines})")),
        }
        Ok(())
    }

    async fn apply(&mut self, bytes: Bytes, hunks: Vec<Hunk>) -> Result<Patched, ToolError> {
        if hunks.is_empty() {
            let bytes = bytes.to_vec();
            return Ok(Patched {
                bytes,
                ..Patched::default()
            });
        }
        let mut work = std::mem::take(&mut self.work);
        let apply = move || {
            let patched = apply(&bytes, &hunks, &mut work);
            (patched, work)
        };
        // The work does not depend on the size alone, so it is always done off the async workers.
        let (patched, work) = off_thread(self.tree.tenant(), apply).await;
        self.work = work;
        patched.map_err(ToolError::new)
    }

    async fn read(&self, path: &FilePath) -> Result<Bytes, ToolError> {
        explained(&self.tree, self.tree.read(path).await).await
    }

    async fn write(&mut self, path: &FilePath, bytes: Bytes, is_executable: bool) -> Result<(), ToolError> {
        self.tree = explained(&self.tree, self.tree.with_file(path, bytes, is_executable).await).await?;
        Ok(())
    }

    /// Removes a file. Refuses it if a command has left a file there, which would show again.
    async fn remove(&mut self, path: &FilePath) -> Result<(), ToolError> {
        let tree = explained(&self.tree, self.tree.without(path).await).await?;
        let found = with_ephemeral_file(self.edit, &tree, path).await?;
        if !found.is_same(&tree) {
            let message = "a command has left it there, and it is ephemeral; move or delete it with the shell";
            return Err(ToolError::new(message));
        }
        self.tree = tree;
        Ok(())
    }

    /// Checks that nothing is at the path of a new file.
    async fn check_free(&self, path: &FilePath) -> Result<(), ToolError> {
        match explained(&self.tree, self.tree.entry(path).await).await? {
            None => Ok(()),
            Some(_) => Err(ToolError::new(format!("{path} exists already; update it instead"))),
        }
    }

    fn note(&mut self, done: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = write!(self.report, "\n{done}");
    }
}
