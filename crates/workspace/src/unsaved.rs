//! The unsaved parts of a directory, at any depth.

use bytes::Bytes;

use super::node::{File, Index, Item, Node, Slot};
use values::session::Hash;

/// Returns the files of a directory, at any depth, that are not saved.
pub(super) fn unsaved_files(node: &Node) -> Vec<(Hash, Bytes)> {
    let mut files = Vec::new();
    for_each_unsaved(node, &mut |(_, slot)| {
        if let Slot::File(File {
            hash,
            unsaved: Some(bytes),
            ..
        }) = slot
        {
            files.push((*hash, bytes.clone()));
        }
    });
    files
}

/// Returns the number of names in parts of directories that are not saved.
pub(super) fn unsaved_entries(node: &Node) -> u64 {
    let mut count = 0;
    for_each_unsaved(node, &mut |_| count += 1);
    count
}

/// Visits all names in unsaved parts of directories. Paths have at most 64 levels, so recursion is
/// safe.
fn for_each_unsaved(node: &Node, visit: &mut impl FnMut(&Item)) {
    let parts = node.unsaved().map(Index::parts).unwrap_or_default();
    for item in parts.iter().flat_map(|part| part.unsaved().unwrap_or_default()) {
        visit(item);
        if let (_, Slot::Directory(child)) = item {
            for_each_unsaved(child, visit);
        }
    }
}
