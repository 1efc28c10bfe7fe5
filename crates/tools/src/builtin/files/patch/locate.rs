//! Finds the old lines of a hunk in a file. The line numbers of a patch may be wrong, its lines may
//! not: every context line and every removed line must be in the file as it is in the patch.

use super::model::Hunk;
use crate::builtin::files::text::{quoted, without_end};

/// The work of one patch: about the lines that are compared. A hostile patch of many hunks that
/// almost match would take hours otherwise.
const MAX_WORK: usize = 20_000_000;
/// The bytes of a line that are compared for one unit of work.
const BYTES_OF_WORK: usize = 64;
/// The most line numbers that an error lists.
const MAX_LISTED: usize = 10;

/// The rest of the work that one patch may take.
#[derive(Debug)]
pub(super) struct Work(usize);

/// The lines of a file, with their ends, and the positions found so far.
#[derive(Debug)]
pub(super) struct Locator<'a> {
    pub(super) lines: &'a [&'a [u8]],
    /// The line after the previous hunk.
    next: usize,
    /// By how many lines the hunk before was after its number.
    drift: isize,
}

/// Why the old lines of a hunk are not found. The message is for the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotFound(pub(super) String);

impl Default for Work {
    fn default() -> Self {
        Self(MAX_WORK)
    }
}

impl Work {
    fn spend(&mut self, work: usize) -> Result<(), NotFound> {
        let too_much = || NotFound("the patch takes too long to apply; split it, or write the whole file".to_owned());
        self.0 = self.0.checked_sub(work).ok_or_else(too_much)?;
        Ok(())
    }
}

impl<'a> Locator<'a> {
    pub(super) fn new(lines: &'a [&'a [u8]]) -> Self {
        Self {
            lines,
            next: 0,
            drift: 0,
        }
    }

    /// Returns the index of the line at which the old lines of the hunk begin.
    pub(super) fn find(&mut self, hunk: &Hunk, work: &mut Work) -> Result<usize, NotFound> {
        let old: Vec<&[u8]> = hunk.old_lines().map(|line| without_end(line.text.as_bytes())).collect();
        let after_anchors = self.after_anchors(hunk, work)?;
        let found = if old.is_empty() {
            self.find_insertion(hunk, after_anchors)
        } else {
            self.find_lines(hunk, &old, after_anchors, work)?
        };
        if let Some(expected) = expected(hunk) {
            self.drift = found.cast_signed() - expected.cast_signed();
        }
        self.next = found + old.len();
        Ok(found)
    }

    /// Returns the line after the anchors of the hunk, if it has some.
    fn after_anchors(&self, hunk: &Hunk, work: &mut Work) -> Result<Option<usize>, NotFound> {
        let mut after = None;
        for anchor in &hunk.anchors {
            let anchor = anchor.trim().as_bytes();
            let begin = after.unwrap_or(self.next);
            let found = match self.find_anchor(anchor, begin, work)? {
                // Hunks need not be in the order of the file.
                None if after.is_none() => self.find_anchor(anchor, 0, work)?,
                found => found,
            };
            let found = found.ok_or_else(|| NotFound(format!("no line is {}", quoted(anchor))))?;
            after = Some(found + 1);
        }
        Ok(after)
    }

    /// Finds the first line that is the anchor apart from spaces around it or, if there is none,
    /// that begins with it.
    fn find_anchor(&self, anchor: &[u8], begin: usize, work: &mut Work) -> Result<Option<usize>, NotFound> {
        work.spend(self.lines.len() - begin.min(self.lines.len()))?;
        let lines = || self.lines.iter().enumerate().skip(begin);
        let same = lines().find(|(_, line)| line.trim_ascii() == anchor);
        let found = same.or_else(|| lines().find(|(_, line)| line.trim_ascii_start().starts_with(anchor)));
        Ok(found.map(|(index, _)| index))
    }

    /// Returns where a hunk without old lines is inserted: at its number, after its anchor, or at
    /// the end of the file.
    fn find_insertion(&self, hunk: &Hunk, after_anchors: Option<usize>) -> usize {
        let end = self.lines.len();
        if hunk.is_at_end {
            return end;
        }
        let numbered = || expected(hunk).map(|expected| expected.saturating_add_signed(self.drift).min(end));
        after_anchors.or_else(numbered).unwrap_or(end)
    }

    fn find_lines(
        &self,
        hunk: &Hunk,
        old: &[&[u8]],
        after_anchors: Option<usize>,
        work: &mut Work,
    ) -> Result<usize, NotFound> {
        let last = self.lines.len().checked_sub(old.len());
        let expected = expected(hunk).map(|expected| expected.saturating_add_signed(self.drift));
        let at_end = last.filter(|_| hunk.is_at_end);
        for begin in [at_end, expected].into_iter().flatten() {
            if self.is_at(begin, old, work)? {
                return Ok(begin);
            }
        }
        let begin = after_anchors.unwrap_or(self.next);
        let mut found = self.all(begin, old, work)?;
        if found.is_empty() && after_anchors.is_none() {
            // Hunks need not be in the order of the file.
            found = self.all(0, old, work)?;
        }
        match found.as_slice() {
            [] => Err(NotFound(self.mismatch(expected, after_anchors, old, work)?)),
            [only] => Ok(*only),
            // The anchors say which one is meant.
            [first, ..] if after_anchors.is_some() => Ok(*first),
            several => Err(ambiguous(several)),
        }
    }

    /// Returns where the lines are, at or after a line. Stops after one more than is listed.
    fn all(&self, begin: usize, old: &[&[u8]], work: &mut Work) -> Result<Vec<usize>, NotFound> {
        let mut found = Vec::new();
        for index in begin..(self.lines.len() + 1).saturating_sub(old.len()) {
            if self.is_at(index, old, work)? {
                found.push(index);
            }
            if found.len() > MAX_LISTED {
                break;
            }
        }
        Ok(found)
    }

    fn is_at(&self, begin: usize, old: &[&[u8]], work: &mut Work) -> Result<bool, NotFound> {
        let Some(lines) = self.lines.get(begin..).and_then(|lines| lines.get(..old.len())) else {
            return Ok(false);
        };
        Ok(same_lines(lines, old, work)? == old.len())
    }

    /// Explains the difference between the hunk and the lines that it probably means.
    fn mismatch(
        &self,
        expected: Option<usize>,
        after_anchors: Option<usize>,
        old: &[&[u8]],
        work: &mut Work,
    ) -> Result<String, NotFound> {
        let Some(first) = old.iter().copied().find(|line| !line.trim_ascii().is_empty()) else {
            return Ok("its lines are not in the file".to_owned());
        };
        let offset = old.iter().position(|line| *line == first).unwrap_or_default();
        let mut best = None;
        for (index, line) in self.lines.iter().enumerate().skip(after_anchors.unwrap_or(0)) {
            work.spend(1)?;
            if without_end(line) != first {
                continue;
            }
            let same = same_lines(&self.lines[index..], &old[offset..], work)?;
            if best.is_none_or(|(most, _)| same > most) {
                best = Some((same, index));
            }
        }
        let at = best.or_else(|| expected.filter(|at| *at < self.lines.len()).map(|at| (0, at + offset)));
        let Some((same, index)) = at else {
            return Ok(format!("its line {} is not in the file", quoted(first)));
        };
        let wanted = old.get(offset + same).map_or_else(String::new, |line| quoted(line));
        Ok(match self.lines.get(index + same) {
            Some(line) => {
                let (number, line) = (index + same + 1, quoted(without_end(line)));
                format!("it has {wanted}, but line {number} of the file is {line}")
            }
            None => format!("it has {wanted}, but the file ends before that"),
        })
    }
}

/// Returns how many lines are the same, up to the first that differs. The ends do not count.
fn same_lines(lines: &[&[u8]], old: &[&[u8]], work: &mut Work) -> Result<usize, NotFound> {
    for (index, (line, old)) in lines.iter().zip(old).enumerate() {
        let line = without_end(line);
        // Lines of different lengths are not compared.
        let bytes = if line.len() == old.len() { line.len() } else { 0 };
        work.spend(1 + bytes / BYTES_OF_WORK)?;
        if line != *old {
            return Ok(index);
        }
    }
    Ok(lines.len().min(old.len()))
}

/// Returns the index of the first old line by the numbers of the patch.
fn expected(hunk: &Hunk) -> Option<usize> {
    let line = hunk.start?;
    let has_old_lines = hunk.old_lines().next().is_some();
    // Without old lines, it is the number of the line before the new ones.
    Some(if has_old_lines { line.saturating_sub(1) } else { line })
}

fn ambiguous(found: &[usize]) -> NotFound {
    let numbers: Vec<_> = found
        .iter()
        .take(MAX_LISTED)
        .map(|index| (index + 1).to_string())
        .collect();
    let more = if found.len() > MAX_LISTED { " and more" } else { "" };
    NotFound(format!(
        "its lines are in the file several times, at the lines {}{more}; add context lines until they are there once",
        numbers.join(", ")
    ))
}
