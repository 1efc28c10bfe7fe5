//! `edit_file`: exact replacements in one file, all or none.

mod mismatch;
mod replace;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use self::replace::{Replacement, replace};
use super::edits::{begin, finish, with_ephemeral_file};
use super::paths::{executable, explained, file_path, file_schema};
use super::text::{counted, line_count};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use tasks::off_thread::by_size;
use values::json::Value;
use values::tenant::TenantId;
use workspace::{FilePath, Tree, unified_diff};

/// The most replacements of one call.
const MAX_EDITS: usize = 100;
/// The longest text of one replacement, in characters.
const MAX_TEXT_LENGTH: usize = 1 << 20;
/// The most bytes of the difference that the result shows.
const MAX_DIFF_BYTES: usize = 8_000;
/// The difference of two files takes about as many operations as their lines times the changed
/// lines. If these are more, no difference is shown.
const MAX_DIFF_WORK: usize = 20_000_000;

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    edits: Vec<Replacement>,
}

/// Makes the tool.
pub(super) fn edit_file() -> FunctionTool {
    let text = |min: usize, description: &str| json!({"type": "string", "minLength": min, "maxLength": MAX_TEXT_LENGTH, "description": description});
    let old = "The exact text to replace, with all spaces and line ends, but without line numbers. It must be in \
               the file once: add lines around it until it is.";
    let properties = json!({
        "path": file_schema(),
        "edits": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_EDITS,
            "items": {
                "type": "object",
                "properties": {
                    "old": text(1, old),
                    "new": text(0, "The text instead. Empty to delete the old text."),
                    "all": {
                        "type": "boolean",
                        "description": "Whether to replace every occurrence, for example of a name.",
                    },
                },
                "required": ["old", "new"],
                "additionalProperties": false,
            },
            "description": "The replacements. Each one sees the result of those before it.",
        },
    });
    let description = "Replaces exact text in a file of the workspace, in one or several positions. All edits \
                       happen or none. Returns the difference. Read the file first. Use it for every change of a \
                       part of one file.";
    let spec = environment_tool(
        "edit_file",
        Effect::Overwrites,
        description,
        properties,
        &["path", "edits"],
    );
    FunctionTool::new(spec, |arguments, context| Box::pin(edit(arguments, context)))
}

async fn edit(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Arguments { path, edits } = read_arguments(arguments)?;
    let edit = begin(context).await?;
    let path = file_path(&edit.tree, &path).await?;
    let found = with_ephemeral_file(&edit, &edit.tree, &path).await?;
    let before = explained(&found, found.read(&path).await).await?;
    let (tenant, max_bytes) = (edit.tree.tenant(), edit.tree.limits().file_bytes);
    let mut after = before.clone();
    let (mut count, mut changed_lines) = (0, 0);
    let total = edits.len();
    for (index, replacement) in edits.into_iter().enumerate() {
        let lines = [&replacement.old, &replacement.new].map(|text| line_count(text.as_bytes()));
        let size = after.len() as u64;
        let replaced = by_size(tenant, size, move || replace(&after, &replacement, max_bytes)).await;
        let (bytes, replacements) = replaced.map_err(|message| not_edited(&path, index, total, &message))?;
        after = Bytes::from(bytes);
        count += replacements;
        changed_lines += replacements.saturating_mul(lines.iter().sum());
    }
    let difference = difference(tenant, &path, [before, after.clone()], changed_lines).await;
    let changed = explained(&edit.tree, changed_tree(&found, &path, after).await).await?;
    finish(edit, changed).await?;
    let done = format!("Edited {path}: {}.{difference}", counted(count, "replacement"));
    Ok(ToolOutput::text(done))
}

async fn changed_tree(tree: &Tree, path: &FilePath, bytes: Bytes) -> Result<Tree, workspace::TreeError> {
    let is_executable = executable(tree, path).await?.unwrap_or_default();
    tree.with_file(path, bytes, is_executable).await
}

fn not_edited(path: &FilePath, index: usize, total: usize, message: &str) -> ToolError {
    let which = if total == 1 {
        String::new()
    } else {
        format!("edit {} of {total}: ", index + 1)
    };
    ToolError::new(format!("{path} was not edited: {which}{message}"))
}

/// Returns the difference between the versions for the model. Empty if it takes too long to find or
/// can't be shown.
async fn difference(tenant: &TenantId, path: &FilePath, versions: [Bytes; 2], changed_lines: usize) -> String {
    let path = path.clone();
    let size = versions.iter().map(|bytes| bytes.len() as u64).sum();
    let find = move || {
        let lines: usize = versions.iter().map(|bytes| line_count(bytes)).sum();
        if lines.saturating_mul(changed_lines) > MAX_DIFF_WORK {
            return String::new();
        }
        let [before, after] = &versions;
        let difference = unified_diff(&path, Some(before), Some(after), MAX_DIFF_BYTES);
        match (difference.text.as_str(), difference.is_truncated) {
            ("", _) => String::new(),
            (text, false) => format!("\n\n{text}"),
            (text, true) => format!("\n\n{text}[The difference is cut here.]"),
        }
    };
    by_size(tenant, size, find).await
}
