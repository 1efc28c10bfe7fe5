//! Shows how a text file changed, in the unified format that `patch` and `git apply` read.

use super::path::FilePath;
use super::text::{Edit, Numbering, edits, is_text, split_lines};

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

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
    let mut out = Output {
        text: String::new(),
        max_bytes,
        is_truncated: false,
    };
    out.push_line(&format!("--- {}\n", side_name("a", path, before)));
    out.push_line(&format!("+++ {}\n", side_name("b", path, after)));
    let edits = edits_of(&old_lines, &new_lines);
    for hunk in edits.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT) {
        out.push_hunk(hunk, &old_lines, &new_lines);
    }
    FileDiff {
        text: out.text,
        is_binary: false,
        is_truncated: out.is_truncated,
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

fn edits_of(old_lines: &[&str], new_lines: &[&str]) -> Vec<Edit> {
    let mut numbering = Numbering::default();
    let [old, new] = [old_lines, new_lines].map(|lines| numbering.number(lines.iter().map(|line| line.as_bytes())));
    edits(&old, &new)
}

/// A text of bounded length.
struct Output {
    text: String,
    max_bytes: usize,
    is_truncated: bool,
}

impl Output {
    /// Adds a line with its end, unless the text has ended.
    fn push_line(&mut self, line: &str) {
        self.is_truncated |= self.text.len() + line.len() > self.max_bytes;
        if !self.is_truncated {
            self.text.push_str(line);
        }
    }

    fn push_hunk(&mut self, edits: &[Edit], old_lines: &[&str], new_lines: &[&str]) {
        let (Some(first), Some(last)) = (edits.first(), edits.last()) else {
            return;
        };
        if self.is_truncated {
            return;
        }
        let lead = first.before.start.min(CONTEXT);
        let trail = (old_lines.len() - last.before.end).min(CONTEXT);
        let old = first.before.start - lead..last.before.end + trail;
        let new = first.after.start - lead..last.after.end + trail;
        let mut header = "@@ -".to_owned();
        push_range(&mut header, old.start, old.len());
        header.push_str(" +");
        push_range(&mut header, new.start, new.len());
        header.push_str(" @@\n");
        self.push_line(&header);
        let mut shown = old.start;
        for edit in edits {
            self.push_lines(' ', &old_lines[shown..edit.before.start]);
            self.push_lines('-', &old_lines[edit.before.clone()]);
            self.push_lines('+', &new_lines[edit.after.clone()]);
            shown = edit.before.end;
        }
        self.push_lines(' ', &old_lines[shown..old.end]);
    }

    fn push_lines(&mut self, sign: char, lines: &[&str]) {
        for line in lines {
            if self.is_truncated {
                return;
            }
            match line.strip_suffix('\n') {
                Some(line) => self.push_line(&format!("{sign}{line}\n")),
                None => self.push_line(&format!("{sign}{line}\n\\ No newline at end of file\n")),
            }
        }
    }
}

/// Writes a range of lines. An empty one is after the line that it names.
fn push_range(out: &mut String, start: usize, length: usize) {
    let first = if length == 0 { start } else { start + 1 };
    out.push_str(&first.to_string());
    if length != 1 {
        out.push(',');
        out.push_str(&length.to_string());
    }
}
