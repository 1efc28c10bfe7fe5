//! Applies the hunks of one file to its bytes, all or none.

use super::locate::{Locator, Work};
use super::model::{Hunk, HunkLine, LineKind};
use crate::tools::builtin::files::text::{line_count, without_end};

/// A file with more lines can't be patched.
const MAX_LINES: usize = 1_000_000;

/// The bytes of a patched file, and how many lines changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patched {
    pub(super) bytes: Vec<u8>,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// Applies hunks to a file. The error is for the model.
pub(super) fn apply(file: &[u8], hunks: &[Hunk], work: &mut Work) -> Result<Patched, String> {
    if line_count(file) > MAX_LINES {
        return Err(format!(
            "it has more than {MAX_LINES} lines, which is too many for a patch"
        ));
    }
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let mut locator = Locator::new(&lines);
    let mut located = Vec::with_capacity(hunks.len());
    for (index, hunk) in hunks.iter().enumerate() {
        let begin = locator
            .find(hunk, work)
            .map_err(|error| not_applied(index, hunk, &error.0))?;
        located.push((begin, index));
    }
    located.sort_unstable();
    let mut patched = Patched::default();
    let mut output = Output::default();
    let mut next = 0;
    for (begin, index) in located {
        let hunk = &hunks[index];
        if begin < next {
            return Err(not_applied(index, hunk, "its lines overlap those of another hunk"));
        }
        output.copy(&lines[next..begin]);
        let length = hunk.old_lines().count();
        next = begin + length;
        output.push_hunk(hunk, &lines[begin..next], &lines);
        patched.removed += count(hunk, LineKind::Removed);
        patched.added += count(hunk, LineKind::Added);
    }
    output.copy(&lines[next..]);
    patched.bytes = output.bytes;
    Ok(patched)
}

fn count(hunk: &Hunk, kind: LineKind) -> usize {
    hunk.lines.iter().filter(|line| line.kind == kind).count()
}

fn not_applied(index: usize, hunk: &Hunk, message: &str) -> String {
    format!("hunk {} (line {} of the patch): {message}", index + 1, hunk.patch_line)
}

/// The lines of the patched file.
#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
}

impl Output {
    /// Copies lines of the file.
    fn copy(&mut self, lines: &[&[u8]]) {
        for line in lines {
            self.push(line, b"");
        }
    }

    /// Adds a line and its end. If the line before was the last one of the file, it gets an end.
    fn push(&mut self, line: &[u8], end: &[u8]) {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(line);
        self.bytes.extend_from_slice(end);
    }

    /// Adds the new lines of a hunk. `old` are its old lines in the file.
    fn push_hunk(&mut self, hunk: &Hunk, old: &[&[u8]], lines: &[&[u8]]) {
        let crlf = has_other_crlf(hunk, old).or_else(|| inserts_crlf(hunk, old, lines));
        let mut old = old.iter();
        for line in &hunk.lines {
            match line.kind {
                LineKind::Context => self.copy(old.next().map_or(&[][..], std::slice::from_ref)),
                LineKind::Removed => drop(old.next()),
                LineKind::Added => self.push_added(line, crlf),
            }
        }
    }

    fn push_added(&mut self, line: &HunkLine, crlf: Option<bool>) {
        let text = line.text.as_bytes();
        let (text, end): (_, &[u8]) = match crlf {
            None => (text, b"\n"),
            Some(true) => (without_end(text), b"\r\n"),
            Some(false) => (without_end(text), b"\n"),
        };
        self.push(text, if line.has_end { end } else { b"" });
    }
}

/// Returns whether the lines of the file end with CRLF, if the patch has other ends; models write
/// LF also for files with CRLF. `None` if the patch has the ends of the file.
fn has_other_crlf(hunk: &Hunk, old: &[&[u8]]) -> Option<bool> {
    let with_crlf = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).ends_with(b"\r");
    let mut pairs = hunk.old_lines().zip(old);
    let other = pairs.find(|(line, old)| with_crlf(line.text.as_bytes()) != with_crlf(old));
    other.map(|(_, old)| with_crlf(old))
}

/// Returns whether a hunk without old lines and without CRLF is inserted into a file with CRLF.
fn inserts_crlf(hunk: &Hunk, old: &[&[u8]], lines: &[&[u8]]) -> Option<bool> {
    let has_crlf = hunk.lines.iter().any(|line| line.text.ends_with('\r'));
    let is_crlf_file = !lines.is_empty() && lines.iter().all(|line| line.ends_with(b"\r\n"));
    (old.is_empty() && !has_crlf && is_crlf_file).then_some(true)
}
