//! A directory of a tree, shared by all trees that contain it. It is loaded when it is first
//! needed.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::index::Index;
use super::part::load_parts;
use super::slot::Slot;
use crate::bytes_codec::DecodeError;
use crate::contents::{Contents, ContentsError};
use crate::entry::Totals;
use crate::load::load_directories;
use values::session::Hash;

/// A directory.
pub(crate) enum Node {
    /// The directory is stored.
    Stored(StoredNode),
    /// Something in it is not saved.
    Unsaved(Index),
}

/// A directory that is stored.
pub(crate) struct StoredNode {
    pub(crate) hash: Hash,
    /// The totals that the parent states. Only a root that was opened by its hash has no parent.
    stated: Option<Totals>,
    index: OnceCell<Index>,
}

impl Node {
    /// Makes a directory that is stored, to be loaded when it is needed.
    pub(crate) fn stored(hash: Hash, stated: Option<Totals>) -> Arc<Self> {
        let index = OnceCell::new();
        Arc::new(Self::Stored(StoredNode { hash, stated, index }))
    }

    /// Makes a directory that is stored and loaded.
    pub(crate) fn saved(hash: Hash, index: Index) -> Arc<Self> {
        let stated = Some(index.totals());
        let index = OnceCell::new_with(Some(index));
        Arc::new(Self::Stored(StoredNode { hash, stated, index }))
    }

    /// Makes a directory that is not saved.
    pub(crate) fn new_unsaved(index: Index) -> Arc<Self> {
        Arc::new(Self::Unsaved(index))
    }

    /// Returns the hash; `None` if something in the directory is not saved.
    pub(crate) fn hash(&self) -> Option<Hash> {
        match self {
            Self::Stored(stored) => Some(stored.hash),
            Self::Unsaved(_) => None,
        }
    }

    /// Returns the totals of the directory. They are known unless the directory is a root that is
    /// not loaded.
    pub(crate) fn known_totals(&self) -> Totals {
        match self {
            Self::Stored(StoredNode {
                stated: Some(totals), ..
            }) => *totals,
            Self::Stored(stored) => stored.index.get().map(Index::totals).unwrap_or_default(),
            Self::Unsaved(index) => index.totals(),
        }
    }

    /// Returns the bytes of files that are not saved.
    pub(crate) fn unsaved_bytes(&self) -> u64 {
        self.unsaved().map_or(0, Index::unsaved_bytes)
    }

    /// Returns the names of a directory that is not saved.
    pub(crate) fn unsaved(&self) -> Option<&Index> {
        match self {
            Self::Stored(_) => None,
            Self::Unsaved(index) => Some(index),
        }
    }

    /// Returns whether both are known to be equal.
    pub(crate) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || (self.hash().is_some() && self.hash() == other.hash())
    }

    /// Returns the names of the directory. Loads it if need be.
    pub(crate) async fn index(&self, contents: &dyn Contents) -> Result<&Index, ContentsError> {
        match self {
            Self::Unsaved(index) => Ok(index),
            Self::Stored(stored) => {
                let load = async || {
                    let loaded = load_directories(contents, vec![stored.source()], decode).await?;
                    Ok(loaded.into_iter().next().unwrap_or_default())
                };
                stored.index.get_or_try_init(load).await
            }
        }
    }

    /// Returns the entry under a name.
    pub(crate) async fn find(&self, name: &str, contents: &dyn Contents) -> Result<Option<&Slot>, ContentsError> {
        self.index(contents).await?.find(name, contents).await
    }

    fn loaded(&self) -> Option<&Index> {
        match self {
            Self::Stored(stored) => stored.index.get(),
            Self::Unsaved(index) => Some(index),
        }
    }

    fn lacking(&self) -> Option<&StoredNode> {
        match self {
            Self::Stored(stored) if !stored.index.initialized() => Some(stored),
            Self::Stored(_) | Self::Unsaved(_) => None,
        }
    }
}

impl StoredNode {
    fn source(&self) -> (Hash, (Hash, Option<Totals>)) {
        (self.hash, (self.hash, self.stated))
    }
}

/// Loads directories in batches, without the parts of large ones.
pub(crate) async fn load_indexes(nodes: &[Arc<Node>], contents: &dyn Contents) -> Result<(), ContentsError> {
    let lacking: Vec<_> = nodes.iter().filter_map(|node| node.lacking()).collect();
    let sources = lacking.iter().map(|node| node.source()).collect();
    let loaded = load_directories(contents, sources, decode).await?;
    for (node, index) in lacking.into_iter().zip(loaded) {
        // Another reader may have been faster. It has loaded the same names.
        drop(node.index.set(index));
    }
    Ok(())
}

/// Loads directories and all of their parts, in batches.
pub(crate) async fn load_nodes(nodes: &[Arc<Node>], contents: &dyn Contents) -> Result<(), ContentsError> {
    load_indexes(nodes, contents).await?;
    let indexes = nodes.iter().filter_map(|node| node.loaded());
    let parts: Vec<_> = indexes.flat_map(Index::parts).collect();
    load_parts(&parts, contents).await
}

/// Decodes a directory and checks that it matches the facts in its parent.
fn decode((hash, stated): (Hash, Option<Totals>), bytes: &[u8]) -> Result<Index, DecodeError> {
    let index = Index::decode(hash, bytes)?;
    match stated {
        Some(stated) if stated != index.totals() => Err(DecodeError),
        _ => Ok(index),
    }
}

impl fmt::Debug for Node {
    /// Leaves out the entries of the directory, which may be a million files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("hash", &self.hash())
            .field("totals", &self.known_totals())
            .finish_non_exhaustive()
    }
}
