//! Merges the changes of two texts since their common ancestor, line by line.
//!
//! As in git, two changes conflict if no unchanged line is between them, unless they are equal.
//! Unlike git, a change covers all lines about which there is doubt (`certain_edits.rs`). So some
//! merges conflict here that git does.

use std::ops::Range;

use super::certain_edits::{LineBudget, certain_edits};
use super::text::{Edit, Numbering, is_text, split_lines};

/// Merges two texts; `None` if they conflict, are too large or are not text.
pub(super) fn merge_texts(base: &[u8], ours: &[u8], theirs: &[u8], budget: &mut LineBudget) -> Option<Vec<u8>> {
    if ![base, ours, theirs].into_iter().all(is_text) {
        return None;
    }
    let (base, ours, theirs) = (split_lines(base)?, split_lines(ours)?, split_lines(theirs)?);
    let mut numbering = Numbering::default();
    let numbers = [&base, &ours, &theirs].map(|lines| numbering.number(lines.iter().copied()));
    let our_edits = certain_edits(&numbers[0], &numbers[1], budget)?;
    let their_edits = certain_edits(&numbers[0], &numbers[2], budget)?;
    merge_edits(&base, Side::new(ours, our_edits), Side::new(theirs, their_edits))
}

fn merge_edits(base: &[&[u8]], mut ours: Side<'_>, mut theirs: Side<'_>) -> Option<Vec<u8>> {
    let mut merged = Vec::new();
    let mut done = 0;
    while let Some(start) = ours.next_start().into_iter().chain(theirs.next_start()).min() {
        merged.extend_from_slice(&base[done..start]);
        let mut end = start;
        // Takes edits of both sides as long as they touch each other.
        while ours.take_touching(&mut end) || theirs.take_touching(&mut end) {}
        merged.extend_from_slice(choose(ours.changed(&(start..end)), theirs.changed(&(start..end)))?);
        ours.pass();
        theirs.pass();
        done = end;
    }
    merged.extend_from_slice(&base[done..]);
    Some(merged.concat())
}

/// Returns the changed lines; `None` if both sides changed them in different ways.
fn choose<'a, 'b>(ours: Option<&'a [&'b [u8]]>, theirs: Option<&'a [&'b [u8]]>) -> Option<&'a [&'b [u8]]> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => (ours == theirs).then_some(ours),
        (ours, theirs) => ours.or(theirs),
    }
}

/// One side of a merge.
struct Side<'a> {
    lines: Vec<&'a [u8]>,
    edits: Vec<Edit>,
    /// The number of edits that are merged.
    merged: usize,
    /// The number of edits that are merged or taken together with the next ones.
    taken: usize,
}

impl<'a> Side<'a> {
    fn new(lines: Vec<&'a [u8]>, edits: Vec<Edit>) -> Self {
        Self {
            lines,
            edits,
            merged: 0,
            taken: 0,
        }
    }

    /// Returns the line of the base at which the next edit begins.
    fn next_start(&self) -> Option<usize> {
        self.edits.get(self.merged).map(|edit| edit.before.start)
    }

    /// Takes the next edit if no line is between it and the end.
    fn take_touching(&mut self, end: &mut usize) -> bool {
        match self.edits.get(self.taken) {
            Some(edit) if edit.before.start <= *end => {
                *end = edit.before.end.max(*end);
                self.taken += 1;
                true
            }
            _ => false,
        }
    }

    /// Returns the lines that replace lines of the base, with the taken edits; `None` if no edit is
    /// taken.
    fn changed(&self, base: &Range<usize>) -> Option<&[&'a [u8]]> {
        let edits = &self.edits[self.merged..self.taken];
        let (first, last) = (edits.first()?, edits.last()?);
        let start = first.after.start - (first.before.start - base.start);
        let end = last.after.end + (base.end - last.before.end);
        Some(&self.lines[start..end])
    }

    /// Goes on behind the taken edits.
    fn pass(&mut self) {
        self.merged = self.taken;
    }
}
