//! Compares two trees. Loads only the directories that differ, many at a time.
//!
//! The deepest directories come first. So the work depends on the number of changes, even if a
//! hostile tree has the same directory under many names at each level.

use std::sync::Arc;

use super::entry::Entry;
use super::error::TreeError;
use super::load::MAX_BATCH;
use super::node::{Item, Slot};
use super::path::FilePath;
use super::side_by_side::{Sides, by_name, is_same, load_differing};
use super::tree::Tree;

/// How one tree differs from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeDiff {
    /// The changes, sorted by path.
    pub changes: Vec<TreeChange>,
    /// Whether there are more changes than these.
    pub is_truncated: bool,
    /// The files that differ only in their times, with the times of the second tree.
    pub times: Vec<(FilePath, u64)>,
}

/// A path at which two trees differ.
///
/// It is a file or symlink on at least one side, or an empty directory. A directory that is not
/// empty is added or removed with the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    pub path: FilePath,
    /// The entry of the first tree.
    pub before: Option<Entry>,
    /// The entry of the second tree.
    pub after: Option<Entry>,
}

impl Tree {
    /// Returns how another tree differs from this one, with at most `max` changes. If there are
    /// more, it is not specified which of them are returned.
    pub async fn diff(&self, other: &Self, max: usize) -> Result<TreeDiff, TreeError> {
        let mut diff = TreeDiff::default();
        let mut open = Vec::new();
        if !self.root().is_same(other.root()) {
            open.push(Pair {
                path: None,
                sides: [self, other].map(|tree| Some(Arc::clone(tree.root()))),
            });
        }
        while !open.is_empty() && !diff.is_truncated {
            let batch = open.split_off(open.len().saturating_sub(MAX_BATCH));
            let sides: Vec<_> = batch.iter().map(|pair| pair.sides.clone()).collect();
            let names = load_differing(&sides, [self.contents(), other.contents()]).await?;
            for (pair, names) in batch.iter().zip(&names).rev() {
                pair.compare(names, &mut diff, &mut open)?;
                diff.is_truncated = diff.changes.len() > max;
                if diff.is_truncated {
                    break;
                }
            }
        }
        diff.changes.truncate(max);
        diff.changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(diff)
    }
}

/// Two directories at a path that may differ.
struct Pair {
    path: Option<FilePath>,
    sides: Sides<2>,
}

impl Pair {
    /// Compares the names of the directories. Leaves the directories in them to be compared later.
    fn compare(&self, names: &[Vec<&Item>; 2], diff: &mut TreeDiff, open: &mut Vec<Self>) -> Result<(), TreeError> {
        for (name, slots) in by_name(names) {
            let [before, after] = slots;
            if is_same(before, after) {
                if let (Some(Slot::File(before)), Some(Slot::File(after))) = (before, after)
                    && before.modified != after.modified
                {
                    diff.times
                        .push((FilePath::below(self.path.as_ref(), name)?, after.modified));
                }
                continue;
            }
            let path = FilePath::below(self.path.as_ref(), name)?;
            if is_change(before) || is_change(after) {
                diff.changes.push(TreeChange {
                    path: path.clone(),
                    before: before.map(Slot::to_entry),
                    after: after.map(Slot::to_entry),
                });
            }
            let sides = slots.map(|slot| slot.and_then(Slot::as_directory).cloned());
            if sides.iter().any(Option::is_some) {
                let path = Some(path);
                open.push(Self { path, sides });
            }
        }
        Ok(())
    }
}

/// Returns whether a slot that differs is itself a change, and not only entries below it.
fn is_change(slot: Option<&Slot>) -> bool {
    slot.is_some_and(|slot| slot.as_leaf().is_some() || slot.is_empty_directory())
}
