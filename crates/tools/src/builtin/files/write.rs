//! `write_file`: the whole content of a file.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::line_ends;
use super::paths::{executable, explained, file_path, file_schema};
use super::text::{counted, line_count};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use crate::builtin::files::edits::{begin, finish, with_ephemeral_file};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use values::json::Value;
use workspace::{FilePath, Tree, TreeError};

/// The longest content of one call, in characters.
const MAX_CONTENT_LENGTH: usize = 4 << 20;

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    content: String,
    executable: Option<bool>,
}

/// Makes the tool.
pub(super) fn write_file() -> FunctionTool {
    let properties = json!({
        "path": file_schema(),
        "content": {
            "type": "string",
            "maxLength": MAX_CONTENT_LENGTH,
            "description": "The whole content of the file, exactly as it is to be stored.",
        },
        "executable": {
            "type": "boolean",
            "description": "Whether the file may be executed. By default as before, and false for a new file.",
        },
    });
    let description = "Writes a file of the workspace. Replaces the whole file if it exists, and makes the \
                       directories above it. Use it for new files. To change a part of a file, edit it instead: \
                       that is shorter and can't lose the other parts.";
    let spec = environment_tool(
        "write_file",
        Effect::Overwrites,
        description,
        properties,
        &["path", "content"],
    );
    FunctionTool::new(spec, |arguments, context| Box::pin(write(arguments, context)))
}

async fn write(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let arguments: Arguments = read_arguments(arguments)?;
    let edit = begin(context).await?;
    let path = file_path(&edit.tree, &arguments.path).await?;
    let before = with_ephemeral_file(&edit, &edit.tree, &path).await?;
    let written = written(&before, &path, arguments).await;
    let (tree, message) = explained(&edit.tree, written).await?;
    finish(edit, tree).await?;
    Ok(ToolOutput::text(message))
}

/// Returns the tree with the file, and the message for the model.
async fn written(tree: &Tree, path: &FilePath, arguments: Arguments) -> Result<(Tree, String), TreeError> {
    let before = executable(tree, path).await?;
    let is_executable = arguments.executable.or(before).unwrap_or_default();
    let content = Bytes::from(arguments.content);
    let size = |bytes: &Bytes| format!("{}, {} bytes", counted(line_count(bytes), "line"), bytes.len());
    let now = size(&content);
    let message = if before.is_some() {
        let replaced = tree.read(path).await?;
        if replaced == content {
            format!("{path} has this content already: {now}.")
        } else {
            let ends = [&replaced, &content].map(|bytes| line_ends::note(bytes));
            let note = match &ends {
                [before, after] if before == after || before.is_empty() => String::new(),
                [before, _] => format!(" In the replaced file, {before}."),
            };
            format!("Wrote {path}: {now}. Replaced a file with {}.{note}", size(&replaced))
        }
    } else {
        format!("Wrote {path}: {now}. The file is new.")
    };
    let tree = tree.with_file(path, content, is_executable).await?;
    Ok((tree, message))
}
