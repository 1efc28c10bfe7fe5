//! A part of a directory: a range of its names, stored as one content. A small directory is a
//! single part. A part of a large directory is loaded when a name in it is needed.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::slot::{Name, Slot};
use crate::bytes_codec::DecodeError;
use crate::contents::{Contents, ContentsError};
use crate::directory::{Listing, StoredPart, decode};
use crate::entry::Totals;
use crate::load::load_directories;
use crate::split::is_part;
use values::session::Hash;

/// A name and its entry.
pub(crate) type Item = (Name, Slot);

/// A range of the names of a directory.
#[derive(Debug)]
pub(crate) struct Part {
    first: Name,
    count: usize,
    totals: Totals,
    state: PartState,
}

/// Whether a part is stored.
#[derive(Debug)]
pub(crate) enum PartState {
    Stored {
        hash: Hash,
        /// The first name of the part after it when it was stored.
        next: Option<Name>,
        items: OnceCell<Vec<Item>>,
    },
    Unsaved {
        items: Vec<Item>,
        unsaved_bytes: u64,
    },
}

/// The hash and the totals that a directory states of one of its parts.
struct PartSource {
    first: Name,
    next: Option<Name>,
    count: usize,
    totals: Totals,
}

impl Part {
    /// Makes a part that is not saved; `None` if there are no names.
    pub(crate) fn new(items: Vec<Item>) -> Option<Arc<Self>> {
        let (first, _) = items.first()?;
        Some(Arc::new(Self {
            first: Arc::clone(first),
            count: items.len(),
            totals: totals_of(&items),
            state: PartState::Unsaved {
                unsaved_bytes: items.iter().map(|(_, slot)| slot.unsaved_bytes()).sum(),
                items,
            },
        }))
    }

    /// Makes the only part of a stored directory; `None` if there are no names.
    pub(crate) fn whole(items: Vec<Item>, hash: Hash) -> Option<Arc<Self>> {
        let (first, _) = items.first()?;
        Some(Arc::new(Self {
            first: Arc::clone(first),
            count: items.len(),
            totals: totals_of(&items),
            state: PartState::Stored {
                hash,
                next: None,
                items: OnceCell::new_with(Some(items)),
            },
        }))
    }

    /// Makes a part whose names are loaded when they are needed.
    pub(crate) fn stored(part: StoredPart<'_>, next: Option<Name>) -> Arc<Self> {
        Arc::new(Self {
            first: Name::from(part.first),
            count: part.count,
            totals: part.totals,
            state: PartState::Stored {
                hash: part.hash,
                next,
                items: OnceCell::new(),
            },
        })
    }

    /// Returns the part as it is once it is stored.
    pub(crate) fn saved(&self, hash: Hash, items: Vec<Item>) -> Arc<Self> {
        Arc::new(Self {
            first: Arc::clone(&self.first),
            count: self.count,
            totals: self.totals,
            state: PartState::Stored {
                hash,
                next: None,
                items: OnceCell::new_with(Some(items)),
            },
        })
    }

    /// Returns the first name.
    pub(crate) fn first(&self) -> &str {
        &self.first
    }

    /// Returns the number of names.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the totals of the part, at any depth.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the hash; `None` if the part is not saved.
    pub(crate) fn hash(&self) -> Option<Hash> {
        match self.state {
            PartState::Stored { hash, .. } => Some(hash),
            PartState::Unsaved { .. } => None,
        }
    }

    /// Returns whether the part is stored.
    pub(crate) fn state(&self) -> &PartState {
        &self.state
    }

    /// Returns the names of a part that is not saved.
    pub(crate) fn unsaved(&self) -> Option<&[Item]> {
        match &self.state {
            PartState::Stored { .. } => None,
            PartState::Unsaved { items, .. } => Some(items),
        }
    }

    /// Returns the bytes of files that are not saved.
    pub(crate) fn unsaved_bytes(&self) -> u64 {
        match self.state {
            PartState::Stored { .. } => 0,
            PartState::Unsaved { unsaved_bytes, .. } => unsaved_bytes,
        }
    }

    /// Returns the facts that a directory stores about the part, with the hash.
    pub(crate) fn to_stored(&self, hash: Hash) -> StoredPart<'_> {
        StoredPart {
            first: &self.first,
            count: self.count,
            hash,
            totals: self.totals,
        }
    }

    /// Returns the names. Loads them if need be.
    pub(crate) async fn items(&self, contents: &dyn Contents) -> Result<&Vec<Item>, ContentsError> {
        match &self.state {
            PartState::Unsaved { items, .. } => Ok(items),
            PartState::Stored { items, .. } => {
                let load = async || {
                    let sources = self.source().into_iter().collect();
                    let loaded = load_directories(contents, sources, PartSource::decode).await?;
                    Ok(loaded.into_iter().next().unwrap_or_default())
                };
                items.get_or_try_init(load).await
            }
        }
    }

    /// Returns the hash and the source to load the part; `None` if it has its names.
    fn source(&self) -> Option<(Hash, PartSource)> {
        match &self.state {
            PartState::Stored { hash, next, items } if !items.initialized() => {
                let source = PartSource {
                    first: Arc::clone(&self.first),
                    next: next.clone(),
                    count: self.count,
                    totals: self.totals,
                };
                Some((*hash, source))
            }
            PartState::Stored { .. } | PartState::Unsaved { .. } => None,
        }
    }

    fn set_items(&self, loaded: Vec<Item>) {
        if let PartState::Stored { items, .. } = &self.state {
            // Another reader may have been faster. It has loaded the same names.
            drop(items.set(loaded));
        }
    }
}

/// Loads the names of all parts that lack them, in batches.
pub(crate) async fn load_parts(parts: &[&Arc<Part>], contents: &dyn Contents) -> Result<(), ContentsError> {
    let lacking = parts.iter().filter_map(|part| Some((part, part.source()?)));
    let (lacking, sources): (Vec<&&Arc<Part>>, Vec<_>) = lacking.unzip();
    let loaded = load_directories(contents, sources, PartSource::decode).await?;
    for (part, items) in lacking.into_iter().zip(loaded) {
        part.set_items(items);
    }
    Ok(())
}

impl PartSource {
    /// Decodes the part and checks that it matches the facts in its directory.
    fn decode(self, bytes: &[u8]) -> Result<Vec<Item>, DecodeError> {
        let Listing::Entries(entries) = decode(bytes)? else {
            return Err(DecodeError);
        };
        let names = entries.iter().map(|(name, _)| *name);
        let begins = entries.first().is_some_and(|(name, _)| *name == &*self.first);
        let ends = match (&self.next, entries.last()) {
            (Some(next), Some((last, _))) => *last < &**next,
            _ => true,
        };
        if !begins || !ends || entries.len() != self.count || !is_part(names, self.next.is_none()) {
            return Err(DecodeError);
        }
        let items = entries
            .into_iter()
            .map(|(name, entry)| (Name::from(name), Slot::from_stored(entry)));
        let items: Vec<_> = items.collect();
        if totals_of(&items) == self.totals {
            Ok(items)
        } else {
            Err(DecodeError)
        }
    }
}

fn totals_of(items: &[Item]) -> Totals {
    items
        .iter()
        .fold(Totals::default(), |sum, (_, slot)| sum.plus(slot.totals()))
}
