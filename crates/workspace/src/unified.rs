//! Shows how a text file changed, in the unified format that `patch` and `git apply` read.

use similar::TextDiff;

use super::path::FilePath;
use super::text::{is_text, split_lines};

/// How a file changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The change in the unified format. Empty if there is none, or if a version is binary or too
    /// large.
    pub text: String,
    /// Whether a version is not UTF-8 text.
    pub is_binary: bool,
    /// Whether the text ends early, or is missing because a version is too large.
    pub is_truncated: bool,
}

/// Compares two versions of a file; `None` if a side has no file. Returns at most `max_bytes` of
/// text, in whole lines.
///
/// Files of more than 1 MiB or 50,000 lines are too large. Call this off the async workers for
/// large files.
pub fn unified_diff(path: &FilePath, before: Option<&[u8]>, after: Option<&[u8]>, max_bytes: usize) -> FileDiff {
    let versions = (before.unwrap_or_default(), after.unwrap_or_default());
    if versions.0 == versions.1 {
        return FileDiff::default();
    }
    let (Some(old_lines), Some(new_lines)) = (split_lines(versions.0), split_lines(versions.1)) else {
        return FileDiff {
            is_truncated: true,
            ..FileDiff::default()
        };
    };
    let (Some(old_lines), Some(new_lines)) = (as_texts(&old_lines), as_texts(&new_lines)) else {
        return FileDiff {
            is_binary: true,
            ..FileDiff::default()
        };
    };
    let mut shown = Shown {
        text: String::new(),
        max_bytes,
    };
    let names = [side_name("a", path, before), side_name("b", path, after)];
    let is_whole = shown.push(&names, &TextDiff::from_slices(&old_lines, &new_lines));
    FileDiff {
        text: shown.text,
        is_binary: false,
        is_truncated: is_whole.is_none(),
    }
}

/// Returns the lines as text; `None` if one is binary.
fn as_texts<'a>(lines: &[&'a [u8]]) -> Option<Vec<&'a str>> {
    let text = |line: &&'a [u8]| str::from_utf8(line).ok().filter(|_| is_text(line));
    lines.iter().map(text).collect()
}

/// Returns the name of a side. As git does, a tab ends a name with spaces.
fn side_name(side: &str, path: &FilePath, version: Option<&[u8]>) -> String {
    match version {
        None => "/dev/null".to_owned(),
        Some(_) if path.as_str().contains(' ') => format!("{side}/{path}\t"),
        Some(_) => format!("{side}/{path}"),
    }
}

/// A text of bounded length.
struct Shown {
    text: String,
    max_bytes: usize,
}

impl Shown {
    /// Adds the names and the hunks of a difference. Stops with `None` at the first line that is
    /// too much.
    fn push(&mut self, names: &[String; 2], diff: &TextDiff<'_, '_, str>) -> Option<()> {
        let [before, after] = names;
        self.push_line(&format!("--- {before}\n"))?;
        self.push_line(&format!("+++ {after}\n"))?;
        for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
            self.push_line(&format!("{}\n", hunk.header()))?;
            for change in hunk.iter_changes() {
                let (sign, line) = (change.tag(), change.value());
                // The library takes CR for an end, too.
                let end = if line.ends_with('\n') {
                    ""
                } else {
                    "\n\\ No newline at end of file\n"
                };
                self.push_line(&format!("{sign}{line}{end}"))?;
            }
        }
        Some(())
    }

    fn push_line(&mut self, line: &str) -> Option<()> {
        let fits = self.text.len() + line.len() <= self.max_bytes;
        fits.then(|| self.text.push_str(line))
    }
}
