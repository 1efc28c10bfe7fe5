//! `read_file`: the lines of a text file with their numbers, or an image or PDF that the model
//! sees.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::edits::{current, with_ephemeral};
use super::line_ends;
use super::media::{binary, media_type, visible};
use super::paths::{explained, file_path, file_schema};
use super::text::{counted, is_binary, line_count, lines, push_cut};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput, ToolSpec};
use tasks::off_thread::by_size;
use values::json::Value;
use values::message::ContentPart;
use workspace::FilePath;

/// The lines that a call shows, unless it asks for another number.
const DEFAULT_LINES: usize = 2_000;
/// The most lines that a call shows.
const MAX_LINES: usize = 10_000;
/// The most bytes of lines that a call shows.
const MAX_BYTES: usize = 60_000;
/// The most bytes of one line that are shown.
const MAX_LINE_BYTES: usize = 2_000;
/// Loading a large file takes several requests to the store.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// The lines that are shown.
#[derive(Debug, Clone, Copy)]
struct Range {
    /// The first line, from 1.
    first: usize,
    /// The most lines.
    max: usize,
}

/// Makes the tool.
pub(super) fn read_file() -> FunctionTool {
    let properties = json!({
        "path": file_schema(),
        "offset": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000_000,
            "description": "The number of the first line to show, from 1. Leave it out to begin at the top.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LINES,
            "description": "The most lines to show, 2000 by default. Set it only for a part of a long file.",
        },
    });
    let description = "Reads a file of the workspace. Shows each line after its number and a tab, which are no \
                       part of the file, and at last how many lines the file has. If a file is longer than what \
                       is shown, read on with offset. Shows images (PNG, JPEG, GIF, WebP) and PDF files as they \
                       are. Read a file before you edit it.";
    let spec = ToolSpec {
        timeout: Some(TIMEOUT),
        ..environment_tool("read_file", Effect::Reads, description, properties, &["path"])
    };
    FunctionTool::new(spec, |arguments, context| Box::pin(read(arguments, context)))
}

async fn read(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Arguments { path, offset, limit } = read_arguments(arguments)?;
    let tree = current(context).await?;
    let path = file_path(&tree, &path).await?;
    let tree = with_ephemeral(context, &tree, Some(&path), |_, _| true).await?;
    let bytes = explained(&tree, tree.read(&path).await).await?;
    let range = Range {
        first: offset.unwrap_or(1),
        max: limit.unwrap_or(DEFAULT_LINES),
    };
    let size = bytes.len() as u64;
    let content = by_size(tree.tenant(), size, move || content(&path, &bytes, range)).await?;
    Ok(ToolOutput {
        content,
        ..ToolOutput::text("")
    })
}

fn content(path: &FilePath, bytes: &Bytes, range: Range) -> Result<Vec<ContentPart>, ToolError> {
    match media_type(bytes) {
        Some(media_type) => visible(path, media_type, bytes),
        None if is_binary(bytes) => Err(binary(path, None, bytes.len())),
        None => numbered(path, bytes, range).map(|text| vec![ContentPart::text(text)]),
    }
}

/// Returns lines with their numbers, and a last line that says which part of the file they are.
fn numbered(path: &FilePath, bytes: &[u8], range: Range) -> Result<String, ToolError> {
    let total = line_count(bytes);
    if total == 0 && range.first == 1 {
        return Ok(format!("[{path} is empty]"));
    }
    if range.first > total {
        let (first, lines) = (range.first, counted(total, "line"));
        let message = format!("line {first} is past the end: {path} has {lines}");
        return Err(ToolError::new(message));
    }
    let mut text = String::new();
    let (mut last, mut cut_lines) = (range.first - 1, 0);
    for line in lines(bytes).skip(last).take(range.max) {
        let length = text.len();
        // Writing to a string does not fail.
        let _ = write!(text, "{:>6}\t", last + 1);
        push_cut(&mut text, line, MAX_LINE_BYTES);
        text.push('\n');
        if text.len() > MAX_BYTES {
            text.truncate(length);
            break;
        }
        last += 1;
        cut_lines += usize::from(line.len() > MAX_LINE_BYTES);
    }
    let size = bytes.len();
    let _ = write!(
        text,
        "[lines {} to {last} of {total}, {size} bytes in the file",
        range.first
    );
    if last < total {
        let _ = write!(text, "; read on with offset {}", last + 1);
    }
    let ends = line_ends::note(bytes);
    if !ends.is_empty() {
        text.extend(["; ", &ends]);
    }
    if cut_lines > 0 {
        let _ = write!(text, "; {} cut to {MAX_LINE_BYTES} bytes", counted(cut_lines, "line"));
    }
    if str::from_utf8(bytes).is_err() {
        text.push_str("; bytes that are not UTF-8 are shown as �");
    }
    text.push(']');
    Ok(text)
}
