//! Merges two trees over their common ancestor.
//!
//! Each path is merged by itself: a side that leaves it alone takes over the change of the other
//! side. Renames are not detected. Only directories that differ are loaded, one level after
//! another. A directory that both sides changed is merged after everything in it.

use std::sync::Arc;

use super::conflict::{ConflictKind, MergeConflict, Merged};
use super::error::TreeError;
use super::load::MAX_BATCH;
use super::merge_files::merge_file_texts;
use super::merge_leaf::{FileTexts, LeafMerge, merge_leaves};
use super::merged_directory::{MergedDirectory, MergedPath};
use super::node::{Item, Name, Slot};
use super::side_by_side::{by_name, is_same, load_differing};
use super::tree::Tree;
use super::walk::check_walkable;

/// Merges the changes of two trees since their common ancestor. The three have the same tenant.
/// Text files that both sides changed are merged line by line. The limits of `ours` apply to the
/// result.
pub async fn merge(base: &Tree, ours: &Tree, theirs: &Tree) -> Result<Merged, TreeError> {
    if ours.root().is_same(theirs.root()) || base.root().is_same(theirs.root()) {
        return Ok(Merged::Clean(ours.clone()));
    }
    if base.root().is_same(ours.root()) {
        return Ok(Merged::Clean(ours.with_root(Arc::clone(theirs.root()))));
    }
    for tree in [base, ours, theirs] {
        check_walkable(tree.root(), tree.contents()).await?;
    }
    let mut merge = TreeMerge {
        trees: [base, ours, theirs],
        directories: vec![MergedDirectory::root(base, ours, theirs)],
        texts: Vec::new(),
        conflicts: Vec::new(),
    };
    merge.compare().await?;
    merge.merge_texts().await?;
    merge.build().await
}

/// A merge at work. Arrays have the base, ours and theirs.
struct TreeMerge<'a> {
    trees: [&'a Tree; 3],
    /// The directories that differ, each after its parent.
    directories: Vec<MergedDirectory>,
    /// The files whose texts both sides changed.
    texts: Vec<(MergedPath, FileTexts)>,
    conflicts: Vec<MergeConflict>,
}

impl TreeMerge<'_> {
    /// Finds the changes of theirs that ours lacks.
    async fn compare(&mut self) -> Result<(), TreeError> {
        let mut next = 0;
        while next < self.directories.len() {
            let end = self.directories.len().min(next + MAX_BATCH);
            let batch = &self.directories[next..end];
            let sides: Vec<_> = batch.iter().map(|directory| directory.nodes.clone()).collect();
            let names = load_differing(&sides, self.trees.map(Tree::contents)).await?;
            for (directory, names) in (next..end).zip(&names) {
                self.compare_directory(directory, names)?;
            }
            next = end;
        }
        Ok(())
    }

    fn compare_directory(&mut self, directory: usize, names: &[Vec<&Item>; 3]) -> Result<(), TreeError> {
        for (name, slots) in by_name(names) {
            let [base, ours, theirs] = slots;
            if is_same(ours, theirs) || is_same(base, theirs) {
                continue;
            }
            if is_same(base, ours) {
                let change = (Name::from(name), theirs.cloned());
                self.directories[directory].changes.push(change);
                continue;
            }
            let path = MergedPath::below(&self.directories, directory, name)?;
            if slots.iter().flatten().any(|slot| slot.as_directory().is_some()) {
                self.directories.push(MergedDirectory::new(path, slots));
            } else {
                self.merge_leaf(path, slots);
            }
        }
        Ok(())
    }

    fn merge_leaf(&mut self, path: MergedPath, slots: [Option<&Slot>; 3]) {
        match merge_leaves(slots) {
            LeafMerge::Clean(slot) => self.directories[path.parent].changes.push((path.name, slot)),
            LeafMerge::Conflict(kind) => self.report(&path, kind),
            LeafMerge::Texts(texts) => self.texts.push((path, texts)),
        }
    }

    /// Merges the files whose texts both sides changed.
    async fn merge_texts(&mut self) -> Result<(), TreeError> {
        let (paths, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.texts).into_iter().unzip();
        let merged = merge_file_texts(texts, self.trees[1].contents()).await?;
        for (path, file) in paths.into_iter().zip(merged) {
            match file {
                Some(file) => {
                    let change = (path.name, Some(Slot::File(file)));
                    self.directories[path.parent].changes.push(change);
                }
                None => self.report(&path, ConflictKind::BothChanged),
            }
        }
        Ok(())
    }

    fn report(&mut self, path: &MergedPath, kind: ConflictKind) {
        self.directories[path.parent].has_conflict = true;
        self.conflicts.push(MergeConflict {
            path: path.path.clone(),
            kind,
        });
    }

    /// Makes the merged tree, the lowest directories first.
    async fn build(mut self) -> Result<Merged, TreeError> {
        let ours = self.trees[1];
        let mut root = Arc::clone(ours.root());
        while let Some(directory) = self.directories.pop() {
            let node = directory.merged_node(ours).await?;
            let Some(path) = &directory.path else {
                root = node;
                continue;
            };
            match directory.merged_slot(node) {
                Ok(slot) if is_same(slot.as_ref(), directory.ours.as_ref()) => {}
                Ok(slot) => self.directories[path.parent]
                    .changes
                    .push((Arc::clone(&path.name), slot)),
                Err(kind) => self.report(path, kind),
            }
            self.directories[path.parent].has_conflict |= directory.has_conflict;
        }
        if self.conflicts.is_empty() {
            return Ok(Merged::Clean(ours.with_changed_root(root)?));
        }
        self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Merged::Conflicts(self.conflicts))
    }
}
