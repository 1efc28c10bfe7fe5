//! The tree: an immutable value. Its operations are in other files.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::contents::Contents;
use super::limits::WorkspaceLimits;
use super::node::{Index, Node};
use super::unsaved::unsaved_files;
use values::session::Hash;
use values::tenant::TenantId;

/// An immutable tree of files.
///
/// Clones are cheap. Each change returns a new tree, which shares all unchanged parts. Directories
/// are loaded when they are first needed. New files stay in memory until [`save`](Self::save).
///
/// Paths follow symlinks as in an operating system.
#[derive(Debug, Clone)]
pub struct Tree {
    root: Arc<Node>,
    contents: Arc<dyn Contents>,
    limits: WorkspaceLimits,
    /// The time that new files get, in nanoseconds since 1970; 0 for none.
    now: u64,
    /// The files that are not saved, by hash. Filled when the first one is read by its hash.
    unsaved: Arc<OnceLock<HashMap<Hash, Bytes>>>,
}

impl Tree {
    /// Creates a tree without files.
    pub fn empty(contents: Arc<dyn Contents>, limits: WorkspaceLimits) -> Self {
        Self::of(Node::new_unsaved(Index::default()), contents, limits)
    }

    /// Opens a stored tree. Reads nothing yet, so the tree may turn out to be missing or damaged.
    pub fn open(contents: Arc<dyn Contents>, limits: WorkspaceLimits, root: Hash) -> Self {
        Self::of(Node::stored(root, None), contents, limits)
    }

    fn of(root: Arc<Node>, contents: Arc<dyn Contents>, limits: WorkspaceLimits) -> Self {
        Self {
            root,
            contents,
            limits,
            now: 0,
            unsaved: Arc::default(),
        }
    }

    /// Returns the tree with another root.
    pub(super) fn with_root(&self, root: Arc<Node>) -> Self {
        Self::of(root, Arc::clone(&self.contents), self.limits).at(self.now)
    }

    /// Returns the tree with the time that files get which are written from now on, in nanoseconds
    /// since 1970.
    #[must_use]
    pub fn at(self, now: u64) -> Self {
        Self { now, ..self }
    }

    /// Returns that time; 0 if it is not known.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn root(&self) -> &Arc<Node> {
        &self.root
    }

    pub(super) fn contents(&self) -> &dyn Contents {
        &*self.contents
    }

    /// Returns the tree with other limits.
    #[must_use]
    pub fn within(self, limits: WorkspaceLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the limits of the workspace.
    pub fn limits(&self) -> WorkspaceLimits {
        self.limits
    }

    /// Returns the tenant of the workspace.
    pub fn tenant(&self) -> &TenantId {
        self.contents.tenant()
    }

    /// Returns where the tree is stored, and its limits.
    pub fn source(&self) -> (Arc<dyn Contents>, WorkspaceLimits) {
        (Arc::clone(&self.contents), self.limits)
    }

    /// Returns a tree without files, with the same contents and limits.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::empty(Arc::clone(&self.contents), self.limits)
    }

    /// Returns whether both are known to be the same without reading them.
    pub fn is_same(&self, other: &Self) -> bool {
        self.root.is_same(&other.root)
    }

    /// Returns the hash, which covers all files. `None` if the tree is empty or not saved.
    pub fn hash(&self) -> Option<Hash> {
        self.root.hash()
    }

    /// Returns the bytes of the files that are not saved, and so in memory.
    pub fn unsaved_bytes(&self) -> u64 {
        self.root.unsaved_bytes()
    }

    /// Returns the bytes of a file of the tree that is not saved.
    pub(super) fn unsaved_file(&self, hash: &Hash) -> Option<Bytes> {
        self.root.unsaved()?;
        let files = || unsaved_files(&self.root).into_iter().collect();
        self.unsaved.get_or_init(files).get(hash).cloned()
    }
}
