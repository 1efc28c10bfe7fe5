//! The edits between two texts as far as they are certain, for merging.
//!
//! Often there are several ways to describe a change. In `a b b c`, which `b` was added to `a b c`?
//! A merge that picks one of them may combine lines that neither side has next to each other. So an
//! edit here covers all lines about which there is doubt. Then a change of the other side near them
//! conflicts.

use std::ops::Range;

use super::text::{Edit, Match, edits_between, matches};

/// The most changed lines of one text in a merge.
const MAX_CHANGED_LINES: usize = 10_000;

/// The number of changed lines that may still be compared, which bounds the work of a merge.
#[derive(Debug)]
pub(super) struct LineBudget(usize);

impl LineBudget {
    /// Returns the budget of a merge of two trees. Comparing that many lines takes about a second
    /// if they are chosen to be difficult.
    pub(super) fn of_a_merge() -> Self {
        Self(200_000)
    }

    fn take(&mut self, lines: usize) -> Option<()> {
        self.0 = self.0.checked_sub(lines)?;
        Some(())
    }
}

/// Returns the edits between two texts; `None` if too many lines changed. At least one line that is
/// certainly unchanged is between two edits.
pub(super) fn certain_edits(before: &[usize], after: &[usize], budget: &mut LineBudget) -> Option<Vec<Edit>> {
    let prefix = common_length(before.iter(), after.iter());
    let (old, new) = (&before[prefix..], &after[prefix..]);
    let suffix = common_length(old.iter().rev(), new.iter().rev());
    let (old, new) = (&old[..old.len() - suffix], &new[..new.len() - suffix]);
    if old.len().max(new.len()) > MAX_CHANGED_LINES {
        return None;
    }
    budget.take(old.len() + new.len())?;
    let inner = certain_matches(old, new);
    let inner = inner.into_iter().map(|(one, other)| (one + prefix, other + prefix));
    let start = (0..prefix).zip(0..);
    let end = (before.len() - suffix..before.len()).zip(after.len() - suffix..);
    let edits = edits_between(start.chain(inner).chain(end), before.len(), after.len());
    Some(extend_edits(&edits, before, after))
}

fn common_length<'a>(one: impl Iterator<Item = &'a usize>, other: impl Iterator<Item = &'a usize>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the unchanged lines on which a comparison from the start and one from the end agree.
fn certain_matches(before: &[usize], after: &[usize]) -> Vec<Match> {
    let reversed = |lines: &[usize]| lines.iter().rev().copied().collect::<Vec<_>>();
    let backward = matches(&reversed(before), &reversed(after));
    let backward = backward.into_iter().rev();
    let backward = backward.map(|(one, other)| (before.len() - 1 - one, after.len() - 1 - other));
    let mut certain = matches(before, after);
    retain_common(&mut certain, backward);
    certain
}

/// Removes the matches that another sorted list lacks.
fn retain_common(matches: &mut Vec<Match>, others: impl Iterator<Item = Match>) {
    let mut others = others.peekable();
    matches.retain(|found| {
        while others.next_if(|other| other.0 < found.0).is_some() {}
        others.next_if_eq(found).is_some()
    });
}

/// Extends each edit over all places where it could be as well, and joins edits that then touch.
fn extend_edits(edits: &[Edit], before: &[usize], after: &[usize]) -> Vec<Edit> {
    let mut extended: Vec<Edit> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let previous = index.checked_sub(1).map_or(0, |previous| edits[previous].before.end);
        let next = edits.get(index + 1).map_or(before.len(), |next| next.before.start);
        let above = edit.before.start - previous;
        let below = next - edit.before.end;
        let up = room_above(&edit.before, before, above).max(room_above(&edit.after, after, above));
        let down = room_below(&edit.before, before, below).max(room_below(&edit.after, after, below));
        let edit = Edit {
            before: edit.before.start - up..edit.before.end + down,
            after: edit.after.start - up..edit.after.end + down,
        };
        match extended.last_mut() {
            Some(last) if edit.before.start <= last.before.end => {
                last.before.end = edit.before.end;
                last.after.end = edit.after.end;
            }
            _ => extended.push(edit),
        }
    }
    extended
}

/// Returns by how many lines a range can move up, while the lines outside of it stay the same.
fn room_above(range: &Range<usize>, lines: &[usize], max: usize) -> usize {
    if range.is_empty() {
        return 0;
    }
    let above = lines[..range.start].iter().rev().take(max);
    common_length(above, lines[..range.end].iter().rev())
}

/// Returns by how many lines a range can move down, while the lines outside of it stay the same.
fn room_below(range: &Range<usize>, lines: &[usize], max: usize) -> usize {
    if range.is_empty() {
        return 0;
    }
    let below = lines[range.end..].iter().take(max);
    common_length(below, lines[range.start..].iter())
}
