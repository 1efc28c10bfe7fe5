//! `glob`: the files whose paths match a pattern.

use serde::Deserialize;
use serde_json::json;

use super::edits::{current, with_ephemeral};
use super::ignored::{include_ignored_schema, is_patterns_file, with_left_out};
use super::listing::{Page, page_schemas};
use super::paths::{directory_path, directory_schema, explained, shown};
use super::select::{MAX_PATTERN_LENGTH, Pattern, selected};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use values::json::Value;

#[derive(Debug, Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    include_ignored: bool,
}

/// Makes the tool.
pub(super) fn glob() -> FunctionTool {
    let [offset, limit] = page_schemas();
    let properties = json!({
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATTERN_LENGTH,
            "description": "The pattern, such as *.md, src/**/*.rs or **/*.{ts,tsx}. * matches within a name, \
                            ** matches any directories. A pattern without / matches names at any depth.",
        },
        "path": directory_schema(
            "The directory to search in, to which the pattern is relative. Leave it out for \
                            the whole workspace.",
        ),
        "include_ignored": include_ignored_schema(),
        "offset": offset,
        "limit": limit,
    });
    let description = "Finds files of the workspace by a pattern of their paths. Returns the paths, sorted. Use it \
                       when you know something of the name. Use grep to search for content.";
    let spec = environment_tool("glob", Effect::Reads, description, properties, &["pattern"]);
    FunctionTool::new(spec, |arguments, context| Box::pin(find(arguments, context)))
}

async fn find(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let arguments: Arguments = read_arguments(arguments)?;
    let tree = current(context).await?;
    let directory = directory_path(&tree, arguments.path.as_deref()).await?;
    let tree = with_ephemeral(context, &tree, directory.as_ref(), is_patterns_file).await?;
    let pattern = Pattern::read(&tree, &arguments.pattern).await?;
    let found = selected(&tree, directory.as_ref(), Some(pattern), arguments.include_ignored).await;
    let found = explained(&tree, found).await?;
    let text = if found.entries.is_empty() {
        let (pattern, directory) = (&arguments.pattern, shown(directory.as_ref()));
        format!("No file in {directory} matches {pattern:?}.")
    } else {
        let page = Page::new(arguments.offset, arguments.limit);
        page.show(&found.entries, ["file", "files"], |(path, _)| path.to_string())?
    };
    let ephemeral = context.environment.ephemeral(directory.as_ref());
    Ok(ToolOutput::text(with_left_out(text, found.ignored, &ephemeral)))
}
