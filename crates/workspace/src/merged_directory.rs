//! A directory that is being merged.

use std::sync::Arc;

use super::conflict::ConflictKind;
use super::error::TreeError;
use super::merge_leaf::{LeafMerge, choose, merge_leaves};
use super::node::{Index, Name, Node, Slot};
use super::path::FilePath;
use super::path_error::PathError;
use super::side_by_side::Sides;
use super::tree::Tree;

/// A path at which a merge has work to do.
pub(super) struct MergedPath {
    /// The directory that contains it.
    pub(super) parent: usize,
    pub(super) name: Name,
    pub(super) path: FilePath,
}

/// A path that is a directory on at least one side.
pub(super) struct MergedDirectory {
    /// `None` for the root.
    pub(super) path: Option<MergedPath>,
    pub(super) nodes: Sides<3>,
    /// Our slot at the path.
    pub(super) ours: Option<Slot>,
    /// The file or symlink that the path becomes unless it becomes a directory.
    leaf: LeafMerge,
    /// The changes of our directory.
    pub(super) changes: Vec<(Name, Option<Slot>)>,
    /// Whether something in the directory can't be merged, so that the directory remains.
    pub(super) has_conflict: bool,
}

impl MergedPath {
    /// Returns the path of a name in one of the directories.
    pub(super) fn below(directories: &[MergedDirectory], parent: usize, name: &str) -> Result<Self, PathError> {
        let above = directories[parent].path.as_ref().map(|path| &path.path);
        Ok(Self {
            parent,
            name: Name::from(name),
            path: FilePath::below(above, name)?,
        })
    }
}

impl MergedDirectory {
    /// Makes the root, which differs on all sides.
    pub(super) fn root(base: &Tree, ours: &Tree, theirs: &Tree) -> Self {
        Self {
            path: None,
            nodes: [base, ours, theirs].map(|tree| Some(Arc::clone(tree.root()))),
            ours: None,
            leaf: LeafMerge::Clean(None),
            changes: Vec::new(),
            has_conflict: false,
        }
    }

    /// Makes a directory from the entries of the sides at a path.
    pub(super) fn new(path: MergedPath, slots: [Option<&Slot>; 3]) -> Self {
        Self {
            path: Some(path),
            nodes: slots.map(|slot| slot.and_then(Slot::as_directory).cloned()),
            ours: slots[1].cloned(),
            leaf: merge_leaves(slots.map(|slot| slot.and_then(Slot::as_leaf))),
            changes: Vec::new(),
            has_conflict: false,
        }
    }

    /// Returns our directory with the changes; an empty one if ours has none.
    pub(super) async fn merged_node(&self, tree: &Tree) -> Result<Arc<Node>, TreeError> {
        let ours = self.nodes[1].as_ref();
        if let Some(node) = ours
            && self.changes.is_empty()
        {
            return Ok(Arc::clone(node));
        }
        let mut index = match ours {
            Some(node) => node.index(tree.contents()).await?.clone(),
            None => Index::default(),
        };
        for (name, slot) in &self.changes {
            index = index.with(name, slot.clone(), tree.contents()).await?;
        }
        Ok(Node::new_unsaved(index))
    }

    /// Returns the merged entry. A directory remains while something is in it.
    pub(super) fn merged_slot(&self, node: Arc<Node>) -> Result<Option<Slot>, ConflictKind> {
        let [base, ours, theirs] = self.nodes.each_ref().map(Option::is_some);
        let directory = Slot::Directory(node);
        let is_directory = choose(base, ours, theirs) || self.has_conflict || !directory.is_empty_directory();
        match &self.leaf {
            LeafMerge::Clean(None) => Ok(is_directory.then_some(directory)),
            LeafMerge::Clean(leaf) if !is_directory => Ok(leaf.clone()),
            LeafMerge::Conflict(kind) if !is_directory => Err(*kind),
            _ => Err(ConflictKind::FileAndDirectory),
        }
    }
}
