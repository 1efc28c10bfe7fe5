//! Stores the text of a result that is too long for the model in a file of the workspace.
//!
//! The file is an ordinary file of the session: it is forked, compared and removed like any other.
//! Its name derives from the key of the call, so a call that is repeated writes the same file.

use bytes::Bytes;

use agent::ports::{ToolContext, ToolOutput};
use values::message::{ContentPart, joined_text};
use workspace::FilePath;
use workspace::environment::EnvironmentError;

/// The directory of the files.
pub(super) const OUTPUT_DIRECTORY: &str = ".agent/output/";
/// The digits of a call's key in the name of its file.
const KEY_DIGITS: usize = 16;
/// The room for the note, in bytes.
const NOTE_BYTES: usize = 400;

/// Stores the text of a result in a file if it is longer than the limit. The result then has the
/// beginning and the end of the text, and the name of the file.
pub(super) async fn stored_if_long(
    tool: &str,
    output: ToolOutput,
    max_bytes: usize,
    context: &ToolContext,
) -> ToolOutput {
    let bytes = output.content.iter().filter_map(ContentPart::as_text).map(str::len);
    let is_text = output.content.iter().all(|part| part.as_text().is_some());
    if !is_text || bytes.sum::<usize>() <= max_bytes {
        return output;
    }
    let text = joined_text(&output.content);
    let shortened = match stored(tool, &text, context).await {
        Ok(Some(path)) => shortened(&text, &path, max_bytes),
        Ok(None) => return output,
        Err(error) => {
            // The result is cut instead: the model still has the beginning.
            let error = &error as &dyn std::error::Error;
            tracing::info!(error, tool, "a long output was not stored");
            return output;
        }
    };
    ToolOutput {
        content: vec![ContentPart::text(shortened)],
        ..output
    }
}

/// Writes the file. Returns `None` if its path would be invalid.
async fn stored(tool: &str, text: &str, context: &ToolContext) -> Result<Option<FilePath>, EnvironmentError> {
    let key: String = context
        .idempotency_key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(KEY_DIGITS)
        .collect();
    let Ok(path) = FilePath::parse(&format!("{OUTPUT_DIRECTORY}{tool}-{key}.txt")) else {
        return Ok(None);
    };
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let edit = context.environment.edit().await?;
    let tree = edit.tree.with_file(&path, bytes, false).await?;
    edit.finish(tree).await?;
    Ok(Some(path))
}

/// Returns the beginning of the text, a note, and the end of the text.
fn shortened(text: &str, path: &FilePath, max_bytes: usize) -> String {
    let room = max_bytes.saturating_sub(NOTE_BYTES);
    let begin = &text[..text.floor_char_boundary(room / 3 * 2)];
    let end = &text[text.ceil_char_boundary(text.len() - room / 3)..];
    let (left_out, total, lines) = (text.len() - begin.len() - end.len(), text.len(), text.lines().count());
    format!(
        "{begin}\n[{left_out} bytes are left out here. The whole output ({total} bytes, {lines} lines) is in the file {path} of the workspace.]\n{end}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_remain() {
        let path = FilePath::parse(".agent/output/grep-1.txt").unwrap();
        let text = format!("{}\n{}", "é".repeat(2_000), "z".repeat(2_000));
        let short = shortened(&text, &path, 1_000);
        assert!(
            short.len() <= 1_000 && short.starts_with("éé") && short.ends_with("zz"),
            "{short}"
        );
        assert!(
            short.contains("(6001 bytes, 2 lines) is in the file .agent/output/grep-1.txt"),
            "{short}"
        );
        assert!(
            shortened(&text, &path, 10).len() <= NOTE_BYTES,
            "a tiny limit leaves only the note"
        );
    }
}
