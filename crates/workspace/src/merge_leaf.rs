//! Merges the entries of three trees at one path, if none of them is a directory.

use super::conflict::ConflictKind;
use super::node::{File, Slot};
use super::side_by_side::is_same;

/// The result of merging files and symlinks at a path.
#[derive(Debug)]
pub(super) enum LeafMerge {
    /// A file, a symlink or nothing.
    Clean(Option<Slot>),
    /// A file whose text both sides changed.
    Texts(FileTexts),
    Conflict(ConflictKind),
}

/// The versions of a file whose texts are to be merged.
#[derive(Debug)]
pub(super) struct FileTexts {
    pub(super) base: File,
    pub(super) ours: File,
    pub(super) theirs: File,
    /// Whether the merged file may be executed.
    pub(super) is_executable: bool,
}

/// Merges files and symlinks.
pub(super) fn merge_leaves([base, ours, theirs]: [Option<&Slot>; 3]) -> LeafMerge {
    if is_same(ours, theirs) || is_same(base, theirs) {
        return LeafMerge::Clean(ours.cloned());
    }
    if is_same(base, ours) {
        return LeafMerge::Clean(theirs.cloned());
    }
    match (base, ours, theirs) {
        (Some(Slot::File(base)), Some(Slot::File(ours)), Some(Slot::File(theirs))) => merge_files(base, ours, theirs),
        (None, _, _) => LeafMerge::Conflict(ConflictKind::BothAdded),
        (_, Some(_), Some(_)) => LeafMerge::Conflict(ConflictKind::BothChanged),
        _ => LeafMerge::Conflict(ConflictKind::ChangedAndDeleted),
    }
}

/// Merges files that both sides changed. The bytes and whether they may be executed are
/// independent.
fn merge_files(base: &File, ours: &File, theirs: &File) -> LeafMerge {
    let is_executable = choose(base.is_executable, ours.is_executable, theirs.is_executable);
    let file = if ours.hash == theirs.hash || theirs.hash == base.hash {
        ours
    } else if ours.hash == base.hash {
        theirs
    } else {
        return LeafMerge::Texts(FileTexts {
            base: base.clone(),
            ours: ours.clone(),
            theirs: theirs.clone(),
            is_executable,
        });
    };
    LeafMerge::Clean(Some(Slot::File(File {
        is_executable,
        ..file.clone()
    })))
}

/// Returns the value of the side that changed it. If there are only two values, one side has the
/// value of the base.
pub(super) fn choose(base: bool, ours: bool, theirs: bool) -> bool {
    if ours == base { theirs } else { ours }
}
