//! `list_files`: the entries of a directory, or everything below it.

use serde::Deserialize;
use serde_json::json;

use super::edits::{current, with_ephemeral};
use super::ignored::{include_ignored_schema, is_patterns_file, with_left_out};
use super::listing::{Page, page_schemas};
use super::paths::{directory_path, directory_schema, explained, shown};
use super::select::everything_below;
use super::text::counted;
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use values::json::Value;
use workspace::{Entry, FilePath};

#[derive(Debug, Deserialize)]
struct Arguments {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    include_ignored: bool,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// Makes the tool.
pub(super) fn list_files() -> FunctionTool {
    let [offset, limit] = page_schemas();
    let properties = json!({
        "path": directory_schema(
            "The directory, relative to the workspace. Leave it out for the whole workspace.",
        ),
        "recursive": {
            "type": "boolean",
            "description": "Whether to list everything below the directory. Use glob to find files by name.",
        },
        "include_ignored": include_ignored_schema(),
        "offset": offset,
        "limit": limit,
    });
    let description = "Lists a directory of the workspace by name: files with their sizes in bytes, directories \
                       (with / at the end) with what is in them, and symlinks. Use it to get to know the files.";
    let spec = environment_tool("list_files", Effect::Reads, description, properties, &[]);
    FunctionTool::new(spec, |arguments, context| Box::pin(list(arguments, context)))
}

async fn list(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let arguments: Arguments = read_arguments(arguments)?;
    let tree = current(context).await?;
    let directory = directory_path(&tree, arguments.path.as_deref()).await?;
    let tree = with_ephemeral(context, &tree, directory.as_ref(), is_patterns_file).await?;
    let listed = if arguments.recursive {
        let below = everything_below(&tree, directory.as_ref(), arguments.include_ignored, |_, _| true);
        below
            .await
            .map(|below| (relative(below.entries, directory.as_ref()), below.ignored))
    } else {
        tree.list(directory.as_ref()).await.map(|entries| (entries, 0))
    };
    let (entries, ignored) = explained(&tree, listed).await?;
    let text = if entries.is_empty() {
        let what = directory.as_ref().map_or("The workspace", FilePath::as_str);
        let state = if ignored == 0 {
            "is empty"
        } else {
            "has only ignored files"
        };
        format!("{what} {state}.")
    } else {
        let page = Page::new(arguments.offset, arguments.limit);
        let list = page.show(&entries, ["entry", "entries"], |(name, entry)| line(name, entry))?;
        format!("{}:\n{list}", shown(directory.as_ref()))
    };
    let ephemeral = context.environment.ephemeral(directory.as_ref());
    Ok(ToolOutput::text(with_left_out(text, ignored, &ephemeral)))
}

/// Returns entries with their paths below the directory.
fn relative(entries: Vec<(FilePath, Entry)>, directory: Option<&FilePath>) -> Vec<(String, Entry)> {
    let prefix = directory.map_or(0, |directory| directory.as_str().len() + 1);
    let relative = |path: FilePath| path.as_str().get(prefix..).unwrap_or_default().to_owned();
    entries
        .into_iter()
        .map(|(path, entry)| (relative(path), entry))
        .collect()
}

fn line(name: &str, entry: &Entry) -> String {
    match entry {
        Entry::File {
            size, is_executable, ..
        } => {
            let executable = if *is_executable { ", executable" } else { "" };
            format!("{name} ({size} bytes{executable})")
        }
        Entry::Symlink { target } => format!("{name} -> {target}"),
        Entry::Directory { totals, .. } => {
            let files = counted(usize::try_from(totals.files).unwrap_or(usize::MAX), "file");
            format!("{name}/ ({files}, {} bytes)", totals.bytes)
        }
    }
}
