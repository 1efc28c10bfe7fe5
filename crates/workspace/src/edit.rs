//! Changes of a tree: each returns a new tree and checks the limits.

use std::sync::Arc;

use bytes::Bytes;

use super::entry::{Entry, Totals};
use super::error::TreeError;
use super::limits::{MAX_FILE_BYTES, MAX_FILES, WorkspaceLimits};
use super::node::{File, Index, Name, Node, Slot};
use super::path::FilePath;
use super::resolve::{LastLink, Position, Step};
use super::symlink::check_target;
use super::tree::Tree;
use tasks::off_thread::by_size;
use values::session::hash_content;

impl Tree {
    /// Writes a file. Makes the directories above it, and replaces a file that exists. If the path
    /// leads to a symlink, writes the file to which that leads.
    pub async fn with_file(&self, path: &FilePath, bytes: Bytes, is_executable: bool) -> Result<Self, TreeError> {
        self.check_size(path, bytes.len() as u64)?;
        let position = self.locate(path, LastLink::Follow).await?;
        if leads_to_directory(&position) {
            return Err(TreeError::NotAFile { path: path.clone() });
        }
        let file = self.new_file(bytes, is_executable).await;
        self.put(position, file).await
    }

    /// The same, but replaces a symlink at the end of the path. Returns the same tree if the file
    /// is there already.
    pub async fn with_file_at(&self, path: &FilePath, bytes: Bytes, is_executable: bool) -> Result<Self, TreeError> {
        self.check_size(path, bytes.len() as u64)?;
        let file = self.new_file(bytes, is_executable).await;
        self.with_slot(path, file).await
    }

    /// Puts a file at a path of which only the size is known. For trees that are listed, and never
    /// saved.
    pub async fn with_unread_file(&self, path: &FilePath, size: u64, is_executable: bool) -> Result<Self, TreeError> {
        let file = Slot::File(File {
            hash: hash_content(b""),
            size,
            is_executable,
            modified: self.now(),
            unsaved: Some(Bytes::new()),
        });
        self.with_slot(path, file).await
    }

    /// Puts an entry at a path. Its contents are stored, or a file of this tree has them. Makes the
    /// directories above it. Replaces a file or symlink by a file or symlink, and a directory by a
    /// directory.
    ///
    /// The caller must know that the contents of a file are stored and have that size. A directory
    /// is loaded and checked, and its real totals count.
    pub async fn with_entry(&self, path: &FilePath, entry: Entry) -> Result<Self, TreeError> {
        let slot = match entry {
            Entry::File {
                hash,
                size,
                is_executable,
                modified,
            } => Slot::File(File {
                hash,
                size,
                is_executable,
                modified,
                unsaved: self.unsaved_file(&hash),
            }),
            Entry::Symlink { target } => Slot::Symlink(Name::from(target)),
            Entry::Directory { hash: Some(hash), .. } => Slot::Directory(Node::stored(hash, None)),
            Entry::Directory { hash: None, .. } => return Err(TreeError::NotSaved { path: path.clone() }),
        };
        self.with_slot(path, slot).await
    }

    /// Puts a symlink at a path. Replaces a file or symlink, and makes the directories above it.
    pub async fn with_symlink(&self, path: &FilePath, target: &str) -> Result<Self, TreeError> {
        self.with_slot(path, Slot::Symlink(Name::from(target))).await
    }

    /// Makes a directory, and those above it. Returns the same tree if the path leads to a
    /// directory.
    pub async fn with_directory(&self, path: &FilePath) -> Result<Self, TreeError> {
        let position = self.locate(path, LastLink::Follow).await?;
        if leads_to_directory(&position) {
            return Ok(self.clone());
        }
        if let Position::Name { slot: Some(_), .. } = position {
            return Err(TreeError::NotADirectory { path: path.clone() });
        }
        self.put(position, Slot::Directory(Node::new_unsaved(Index::default())))
            .await
    }

    /// Removes a file, a symlink, or a directory with everything in it. The directory above it
    /// remains, even if it is empty then.
    pub async fn without(&self, path: &FilePath) -> Result<Self, TreeError> {
        match self.locate(path, LastLink::Keep).await? {
            Position::Name {
                steps, slot: Some(_), ..
            } => self.replace(steps, None).await,
            Position::Name { slot: None, .. } | Position::Root => Err(TreeError::NotFound { path: path.clone() }),
        }
    }

    async fn new_file(&self, bytes: Bytes, is_executable: bool) -> Slot {
        let size = bytes.len() as u64;
        let (hash, bytes) = by_size(self.contents().tenant(), size, move || (hash_content(&bytes), bytes)).await;
        Slot::File(File {
            hash,
            size,
            is_executable,
            modified: self.now(),
            unsaved: Some(bytes),
        })
    }

    /// Puts something at a path without following a symlink there.
    async fn with_slot(&self, path: &FilePath, slot: Slot) -> Result<Self, TreeError> {
        let position = self.locate(path, LastLink::Keep).await?;
        let is_directory = matches!(slot, Slot::Directory(_));
        match &position {
            Position::Name {
                slot: Some(Slot::Directory(_)),
                ..
            } if is_directory => {}
            Position::Name {
                slot: Some(Slot::Directory(_)),
                ..
            }
            | Position::Root => return Err(TreeError::NotAFile { path: path.clone() }),
            Position::Name { slot: Some(_), .. } if is_directory => {
                return Err(TreeError::NotADirectory { path: path.clone() });
            }
            Position::Name { .. } => {}
        }
        if let Some(real_path) = position.path()? {
            match &slot {
                Slot::File(file) => self.check_size(path, file.size)?,
                Slot::Symlink(target) => check_target(&real_path, target)?,
                // Checks the paths and symlinks below the new position.
                Slot::Directory(node) => drop(self.walk_node(node, Some(&real_path), Some(&real_path)).await?),
            }
        }
        self.put(position, slot).await
    }

    /// Puts something at a position, and makes the directories above it.
    async fn put(&self, position: Position, slot: Slot) -> Result<Self, TreeError> {
        // Symlinks may have led to a path that is too long.
        position.path()?;
        let Position::Name {
            steps,
            slot: replaced,
            below,
        } = position
        else {
            return Ok(self.clone());
        };
        if replaced.is_some_and(|replaced| replaced.is_same(&slot)) {
            return Ok(self.clone());
        }
        let wrap = |slot, name| Slot::Directory(Node::new_unsaved(Index::from_items(vec![(name, slot)])));
        let slot = below.into_iter().rev().fold(slot, wrap);
        self.replace(steps, Some(slot)).await
    }

    /// Replaces the entry under the last of the names, and with it all directories above.
    pub(super) async fn replace(&self, steps: Vec<Step>, mut slot: Option<Slot>) -> Result<Self, TreeError> {
        for Step { directory, name } in steps.into_iter().rev() {
            let index = directory.index(self.contents()).await?;
            let index = index.with(&name, slot, self.contents()).await?;
            slot = Some(Slot::Directory(Node::new_unsaved(index)));
        }
        match slot {
            Some(Slot::Directory(root)) => self.with_changed_root(root),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the tree with a root that may be larger than the limits.
    pub(super) fn with_changed_root(&self, root: Arc<Node>) -> Result<Self, TreeError> {
        check_totals(self.limits(), self.root().known_totals(), root.known_totals())?;
        Ok(self.with_root(root))
    }

    fn check_size(&self, path: &FilePath, size: u64) -> Result<(), TreeError> {
        let limit = self.limits().file_bytes.min(MAX_FILE_BYTES);
        if size <= limit {
            return Ok(());
        }
        let path = path.clone();
        Err(TreeError::FileTooLarge { path, size, limit })
    }
}

fn leads_to_directory(position: &Position) -> bool {
    match position {
        Position::Root => true,
        Position::Name { slot, .. } => matches!(slot, Some(Slot::Directory(_))),
    }
}

/// Checks the limits that a change of a tree has made worse. So files can be removed from a tree
/// that is already too large.
pub(super) fn check_totals(limits: WorkspaceLimits, before: Totals, after: Totals) -> Result<(), TreeError> {
    let limit = limits.files.min(MAX_FILES);
    if after.entries() > limit.max(before.entries()) {
        return Err(TreeError::TooManyFiles { limit });
    }
    let limit = limits.bytes;
    if after.bytes > limit.max(before.bytes) {
        return Err(TreeError::TooLarge { limit });
    }
    Ok(())
}
