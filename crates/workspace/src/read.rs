//! Reads of a tree: entries, directories and files.

use std::sync::Arc;

use bytes::Bytes;

use super::chunks::{read_file, read_files};
use super::entry::{Entry, Totals};
use super::error::TreeError;
use super::node::{Node, Slot};
use super::path::FilePath;
use super::resolve::{LastLink, Position};
use super::symlink::check_target;
use super::tree::Tree;

impl Tree {
    /// Returns whether the tree has nothing in it, not even an empty directory.
    pub async fn is_empty(&self) -> Result<bool, TreeError> {
        Ok(self.root().index(self.contents()).await?.is_empty())
    }

    /// Returns how much is in the tree.
    pub async fn totals(&self) -> Result<Totals, TreeError> {
        Ok(self.root().index(self.contents()).await?.totals())
    }

    /// Returns the entry at a path; `None` if there is none. Does not follow a symlink at the end
    /// of the path.
    pub async fn entry(&self, path: &FilePath) -> Result<Option<Entry>, TreeError> {
        let position = match self.locate(path, LastLink::Keep).await {
            Err(TreeError::NotADirectory { .. } | TreeError::NotFound { .. }) => return Ok(None),
            position => position?,
        };
        let real_path = position.path()?;
        match (position, real_path) {
            (Position::Name { slot: Some(slot), .. }, Some(real_path)) => checked_entry(&real_path, &slot).map(Some),
            (Position::Root, _) => {
                let totals = self.totals().await?;
                let hash = self.hash();
                Ok(Some(Entry::Directory { hash, totals }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the path without symlinks; `None` if it leads to the root.
    ///
    /// If something on the path does not exist, returns the path at which a file could be written.
    /// Fails if a file is on the way, or after 40 symlinks.
    pub async fn resolve(&self, path: &FilePath) -> Result<Option<FilePath>, TreeError> {
        Ok(self.locate(path, LastLink::Follow).await?.path()?)
    }

    /// Returns the entries of a directory, sorted by name. `None` means the root.
    pub async fn list(&self, dir: Option<&FilePath>) -> Result<Vec<(String, Entry)>, TreeError> {
        let (node, real_path) = self.directory(dir).await?;
        let index = node.index(self.contents()).await?;
        let items = index.items(self.contents()).await?;
        let entry = |(name, slot): &(Arc<str>, Slot)| {
            let path = FilePath::below(real_path.as_ref(), name)?;
            Ok((name.to_string(), checked_entry(&path, slot)?))
        };
        items.into_iter().map(entry).collect()
    }

    /// Returns the bytes of the file at a path.
    pub async fn read(&self, path: &FilePath) -> Result<Bytes, TreeError> {
        let position = self.locate(path, LastLink::Follow).await?;
        match position {
            Position::Name {
                slot: Some(Slot::File(file)),
                ..
            } => match file.unsaved {
                Some(bytes) => Ok(bytes),
                None => Ok(read_file(self.contents(), file.hash, file.size).await?),
            },
            Position::Name { slot: None, .. } => Err(TreeError::NotFound { path: path.clone() }),
            Position::Name { .. } | Position::Root => Err(TreeError::NotAFile { path: path.clone() }),
        }
    }

    /// Returns the bytes of a file by its hash. The entry is one of this tree, or of any other tree
    /// of the tenant that is saved. Other entries than files have no bytes.
    pub async fn read_entry(&self, entry: &Entry) -> Result<Bytes, TreeError> {
        let Entry::File { hash, size, .. } = entry else {
            return Ok(Bytes::new());
        };
        if let Some(bytes) = self.unsaved_file(hash) {
            return Ok(bytes);
        }
        Ok(read_file(self.contents(), *hash, *size).await?)
    }

    /// Returns the bytes of several entries, like [`read_entry`](Self::read_entry). Small files are
    /// loaded together.
    pub async fn read_entries(&self, entries: &[Entry]) -> Result<Vec<Bytes>, TreeError> {
        let unsaved = |entry: &Entry| match entry {
            Entry::File { hash, .. } => self.unsaved_file(hash),
            Entry::Symlink { .. } | Entry::Directory { .. } => Some(Bytes::new()),
        };
        let known: Vec<_> = entries.iter().map(unsaved).collect();
        let stored = entries.iter().zip(&known);
        let stored = stored.filter_map(|(entry, known)| match (entry, known) {
            (Entry::File { hash, size, .. }, None) => Some((*hash, *size)),
            _ => None,
        });
        let mut loaded = read_files(self.contents(), &stored.collect::<Vec<_>>())
            .await?
            .into_iter();
        let bytes = known
            .into_iter()
            .map(|known| known.or_else(|| loaded.next()).unwrap_or_default());
        Ok(bytes.collect())
    }

    /// Returns a directory and its path without symlinks.
    pub(super) async fn directory(&self, path: Option<&FilePath>) -> Result<(Arc<Node>, Option<FilePath>), TreeError> {
        let Some(path) = path else {
            return Ok((Arc::clone(self.root()), None));
        };
        let position = self.locate(path, LastLink::Follow).await?;
        let real_path = position.path()?;
        match position {
            Position::Root => Ok((Arc::clone(self.root()), None)),
            Position::Name {
                slot: Some(Slot::Directory(node)),
                ..
            } => Ok((node, real_path)),
            Position::Name { slot: None, .. } => Err(TreeError::NotFound { path: path.clone() }),
            Position::Name { slot: Some(_), .. } => Err(TreeError::NotADirectory { path: path.clone() }),
        }
    }
}

/// Returns the entry at a path. A stored tree may be hostile, so a symlink is checked when it is
/// read.
pub(super) fn checked_entry(path: &FilePath, slot: &Slot) -> Result<Entry, TreeError> {
    if let Slot::Symlink(target) = slot {
        check_target(path, target)?;
    }
    Ok(slot.to_entry())
}
