//! Lists everything below a directory. Loads one level of directories after another, in batches.

use std::sync::Arc;

use super::contents::{Contents, ContentsError};
use super::entry::Entry;
use super::error::TreeError;
use super::limits::{MAX_FILES, MAX_LEVELS};
use super::node::{Name, Node, Slot, load_nodes};
use super::path::FilePath;
use super::path_error::PathError;
use super::read::checked_entry;
use super::tree::Tree;

impl Tree {
    /// Returns everything below a directory, depth first by name. `None` means the root. A
    /// directory comes before its entries. Symlinks below the directory are not followed.
    pub async fn walk(&self, dir: Option<&FilePath>) -> Result<Vec<(FilePath, Entry)>, TreeError> {
        let (node, real_path) = self.directory(dir).await?;
        self.walk_node(&node, dir, real_path.as_ref()).await
    }

    /// Checks that there are not more files and directories than the workspace may have.
    pub async fn check_files(&self) -> Result<(), TreeError> {
        let limit = self.limits().files.min(MAX_FILES);
        if self.totals().await?.entries() > limit {
            return Err(TreeError::TooManyFiles { limit });
        }
        Ok(())
    }

    /// Returns everything below a directory as if it were at a path. The real path decides whether
    /// a symlink is valid.
    pub(super) async fn walk_node(
        &self,
        node: &Arc<Node>,
        path: Option<&FilePath>,
        real_path: Option<&FilePath>,
    ) -> Result<Vec<(FilePath, Entry)>, TreeError> {
        check_walkable(node, self.contents()).await?;
        load_below(node, self.contents()).await?;
        let mut entries = Vec::new();
        let mut open = vec![Directory::open(node, path, real_path, self.contents()).await?];
        while let Some(directory) = open.last_mut() {
            let Some((name, slot)) = directory.rest.next() else {
                open.pop();
                continue;
            };
            let path = FilePath::below(directory.path.as_ref(), &name)?;
            let real_path = FilePath::below(directory.real_path.as_ref(), &name)?;
            entries.push((path.clone(), checked_entry(&real_path, &slot)?));
            if let Slot::Directory(node) = &slot {
                open.push(Directory::open(node, Some(&path), Some(&real_path), self.contents()).await?);
            }
        }
        Ok(entries)
    }
}

/// A directory whose entries are being listed.
struct Directory {
    path: Option<FilePath>,
    real_path: Option<FilePath>,
    rest: std::vec::IntoIter<(Name, Slot)>,
}

impl Directory {
    async fn open(
        node: &Node,
        path: Option<&FilePath>,
        real_path: Option<&FilePath>,
        contents: &dyn Contents,
    ) -> Result<Self, ContentsError> {
        let items = node.index(contents).await?.items(contents).await?;
        let items: Vec<_> = items.into_iter().cloned().collect();
        Ok(Self {
            path: path.cloned(),
            real_path: real_path.cloned(),
            rest: items.into_iter(),
        })
    }
}

/// Checks that a directory can be read completely. A few contents can state any number of files.
pub(super) async fn check_walkable(node: &Node, contents: &dyn Contents) -> Result<(), TreeError> {
    let totals = node.index(contents).await?.totals();
    if totals.entries() > MAX_FILES {
        return Err(TreeError::TooManyFiles { limit: MAX_FILES });
    }
    Ok(())
}

/// Loads a directory and all directories below it.
async fn load_below(node: &Arc<Node>, contents: &dyn Contents) -> Result<(), TreeError> {
    let mut level = vec![Arc::clone(node)];
    // The root, and a directory at each level of a path.
    for _ in 0..=MAX_LEVELS {
        if level.is_empty() {
            return Ok(());
        }
        load_nodes(&level, contents).await?;
        let mut below = Vec::new();
        for node in &level {
            let items = node.index(contents).await?.items(contents).await?;
            below.extend(items.into_iter().filter_map(|(_, slot)| slot.as_directory().cloned()));
        }
        level = below;
    }
    Err(TreeError::Path(PathError::TooDeep))
}
