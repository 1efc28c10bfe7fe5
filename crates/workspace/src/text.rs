//! Texts as lines, and the edits between two of them.
//!
//! The files are hostile, so their size is bounded. The algorithm is Myers' with bounded work per
//! line, as in git. The histogram algorithm would need seconds for scattered changes.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Larger files are not compared or merged by lines.
pub(super) const MAX_TEXT_BYTES: usize = 1 << 20;
/// Files with more lines are not compared or merged by lines.
pub(super) const MAX_LINES: usize = 50_000;

/// Returns whether bytes are text: without NUL.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
}

/// Splits a text into lines, each with its end; `None` if the text is too large.
pub(super) fn split_lines(text: &[u8]) -> Option<Vec<&[u8]>> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let lines = text.split_inclusive(|byte| *byte == b'\n').take(MAX_LINES + 1);
    let lines: Vec<_> = lines.collect();
    (lines.len() <= MAX_LINES).then_some(lines)
}

/// Gives equal lines of several texts equal numbers, which are fast to compare.
#[derive(Debug, Default)]
pub(super) struct Numbering<'a>(HashMap<&'a [u8], usize>);

impl<'a> Numbering<'a> {
    /// Returns the numbers of lines.
    pub(super) fn number(&mut self, lines: impl Iterator<Item = &'a [u8]>) -> Vec<usize> {
        let mut number = |line| {
            let next = self.0.len();
            *self.0.entry(line).or_insert(next)
        };
        lines.map(&mut number).collect()
    }
}

/// Lines that other lines replace. Either may be none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The lines before.
    pub(super) before: Range<usize>,
    /// The lines after.
    pub(super) after: Range<usize>,
}

/// Two lines that are the same line, before and after a change.
pub(super) type Match = (usize, usize);

/// Returns the unchanged lines, in order.
pub(super) fn matches(before: &[usize], after: &[usize]) -> Vec<Match> {
    let mut matches = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, before, after) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            matches.extend((old_index..old_index + len).zip(new_index..));
        }
    }
    matches
}

/// Returns the edits between texts of those lengths with those unchanged lines. At least one
/// unchanged line is between two edits.
pub(super) fn edits_between(
    matches: impl IntoIterator<Item = Match>,
    before_length: usize,
    after_length: usize,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut before_start, mut after_start) = (0, 0);
    for (before, after) in matches.into_iter().chain([(before_length, after_length)]) {
        if before > before_start || after > after_start {
            edits.push(Edit {
                before: before_start..before,
                after: after_start..after,
            });
        }
        (before_start, after_start) = (before + 1, after + 1);
    }
    edits
}
