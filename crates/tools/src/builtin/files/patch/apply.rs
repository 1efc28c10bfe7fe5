//! Applies the hunks of one file to its bytes, all or none.

use super::locate::{Locator, Work};
use super::model::{Hunk, HunkLine, LineKind};
use crate::builtin::files::line_ends::{end_of, terminator};
use crate::builtin::files::text::{BYTE_ORDER_MARK, line_count, without_end, without_mark};

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
    // A patch that has the byte order mark takes it for a part of the first line.
    let has_mark = hunks
        .iter()
        .flat_map(Hunk::old_lines)
        .any(|line| line.text.starts_with(BYTE_ORDER_MARK));
    let text = if has_mark { file } else { without_mark(file) };
    let (mark, file) = file.split_at(file.len() - text.len());
    // A patch with CR was made by a program that does not take CR for the end of a line.
    let has_cr = hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
        .any(|line| line.text.contains('\r'));
    let terminator = if has_cr { b'\n' } else { terminator(file) };
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == terminator).collect();
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
    let mut output = Output {
        bytes: Vec::with_capacity(file.len()),
        end: lines
            .iter()
            .rev()
            .find_map(|line| end_of(line, terminator))
            .unwrap_or(b"\n"),
        terminator,
    };
    let mut next = 0;
    for (begin, index) in located {
        let hunk = &hunks[index];
        if begin < next {
            return Err(not_applied(index, hunk, "its lines overlap those of another hunk"));
        }
        output.copy(&lines[next..begin]);
        let length = hunk.old_lines().count();
        next = begin + length;
        let before = begin
            .checked_sub(1)
            .and_then(|before| end_of(lines[before], terminator));
        output.push_hunk(hunk, &lines[begin..next], before);
        patched.removed += count(hunk, LineKind::Removed);
        patched.added += count(hunk, LineKind::Added);
    }
    output.copy(&lines[next..]);
    // An empty file needs no mark.
    let is_complete = output.bytes.is_empty() || output.bytes.starts_with(mark);
    patched.bytes = if is_complete {
        output.bytes
    } else {
        [mark, &output.bytes].concat()
    };
    Ok(patched)
}

fn count(hunk: &Hunk, kind: LineKind) -> usize {
    hunk.lines.iter().filter(|line| line.kind == kind).count()
}

fn not_applied(index: usize, hunk: &Hunk, message: &str) -> String {
    format!("hunk {} (line {} of the patch): {message}", index + 1, hunk.patch_line)
}

/// The lines of the patched file.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    /// How the last line of the file ends that has an end.
    end: &'static [u8],
    /// The byte that ends lines.
    terminator: u8,
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
        if self.bytes.last().is_some_and(|last| *last != self.terminator) {
            self.bytes.extend_from_slice(self.end);
        }
        self.bytes.extend_from_slice(line);
        self.bytes.extend_from_slice(end);
    }

    /// Adds the new lines of a hunk. `old` are its old lines in the file, and `before` is the end
    /// of the line before them. An added line ends like the line before it, or else like the first
    /// old one.
    fn push_hunk(&mut self, hunk: &Hunk, old: &[&[u8]], before: Option<&'static [u8]>) {
        let is_literal = has_ends_of(hunk, old);
        let mut end = old
            .first()
            .and_then(|line| end_of(line, self.terminator))
            .or(before)
            .unwrap_or(self.end);
        let mut old = old.iter();
        for line in &hunk.lines {
            if line.kind == LineKind::Added {
                self.push_added(line, if is_literal { None } else { Some(end) });
                continue;
            }
            let Some(old) = old.next() else { continue };
            end = end_of(old, self.terminator).unwrap_or(end);
            if line.kind == LineKind::Context {
                self.push(old, b"");
            }
        }
    }

    fn push_added(&mut self, line: &HunkLine, end: Option<&[u8]>) {
        let text = line.text.as_bytes();
        let (text, end) = end.map_or((text, &b"\n"[..]), |end| (without_end(text), end));
        self.push(text, if line.has_end { end } else { b"" });
    }
}

/// Returns whether the hunk has CR, and has them where the file does. So its lines are meant as
/// they are.
fn has_ends_of(hunk: &Hunk, old: &[&[u8]]) -> bool {
    let with_cr = |line: &HunkLine| line.text.ends_with('\r');
    let is_cr = |old: &[u8]| old.strip_suffix(b"\n").unwrap_or(old).ends_with(b"\r");
    let mut pairs = hunk.old_lines().zip(old);
    hunk.lines.iter().any(with_cr) && pairs.all(|(line, old)| with_cr(line) == is_cr(old))
}
