//! What the directories that runs use have, for those who copy from them.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::facts::Facts;
use crate::workspace::Tree;

/// What others may know of a directory that a run uses.
#[derive(Debug, Default)]
pub(super) struct Living(Mutex<Option<Known>>);

/// What a directory had when it was last known. A file that still has these facts has the content
/// that it has in the tree, even if a command has run since.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) tree: Tree,
    pub(super) root: PathBuf,
    pub(super) facts: Arc<Facts>,
}

impl Living {
    /// Publishes what the directory has, if the tree is saved.
    pub(super) fn publish(&self, tree: &Tree, root: PathBuf, facts: &Arc<Facts>) {
        if let Some(tree) = unloaded(tree) {
            let facts = Arc::clone(facts);
            *self.0.lock() = Some(Known { tree, root, facts });
        }
    }

    /// Withdraws it before a change.
    pub(super) fn withdraw(&self) {
        *self.0.lock() = None;
    }

    pub(super) fn known(&self) -> Option<Known> {
        self.0.lock().clone()
    }
}

/// Returns a saved tree without what was loaded of it, so that it takes up no memory.
pub(super) fn unloaded(tree: &Tree) -> Option<Tree> {
    let (contents, limits) = tree.source();
    Some(Tree::open(contents, limits, tree.hash()?))
}
