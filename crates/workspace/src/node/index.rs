//! The names of a loaded directory, in the parts as which it is stored.
//!
//! A change replaces the parts that it touches and shares all others.

use std::sync::Arc;

use super::part::{Item, Part, load_parts};
use super::slot::{Name, Slot};
use crate::bytes_codec::DecodeError;
use crate::contents::{Contents, ContentsError};
use crate::directory::{Listing, decode};
use crate::entry::Totals;
use crate::split::{MAX_WHOLE_ENTRIES, first_part, is_part};
use values::session::Hash;

/// The names of a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    parts: Vec<Arc<Part>>,
}

impl Index {
    /// Makes the index of names in order, none of them saved.
    pub(crate) fn from_items(items: Vec<Item>) -> Self {
        let parts = if items.len() <= MAX_WHOLE_ENTRIES {
            Part::new(items).into_iter().collect()
        } else {
            let mut cutter = Cutter { rest: items };
            let mut parts: Vec<_> = std::iter::from_fn(|| cutter.next_part()).collect();
            parts.extend(Part::new(cutter.rest));
            parts
        };
        Self { parts }
    }

    /// Makes an index of parts.
    pub(crate) fn from_parts(parts: Vec<Arc<Part>>) -> Self {
        Self { parts }
    }

    /// Decodes a directory with the hash.
    pub(crate) fn decode(hash: Hash, bytes: &[u8]) -> Result<Self, DecodeError> {
        let parts = match decode(bytes)? {
            Listing::Entries(entries) => {
                let names = entries.iter().map(|(name, _)| *name);
                if entries.len() > MAX_WHOLE_ENTRIES && !is_part(names, true) {
                    return Err(DecodeError);
                }
                let items = entries
                    .into_iter()
                    .map(|(name, entry)| (Name::from(name), Slot::from_stored(entry)));
                Part::whole(items.collect(), hash).into_iter().collect()
            }
            Listing::Parts(parts) => {
                let count: usize = parts.iter().map(|part| part.count).sum();
                if parts.len() < 2 || count <= MAX_WHOLE_ENTRIES {
                    return Err(DecodeError);
                }
                let next = parts
                    .iter()
                    .skip(1)
                    .map(|part| Some(Name::from(part.first)))
                    .chain([None]);
                parts
                    .iter()
                    .zip(next)
                    .map(|(part, next)| Part::stored(*part, next))
                    .collect()
            }
        };
        Ok(Self { parts })
    }

    /// Returns the parts, in order.
    pub(crate) fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// Returns whether there are no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the totals of the directory, at any depth.
    pub(crate) fn totals(&self) -> Totals {
        self.parts
            .iter()
            .fold(Totals::default(), |sum, part| sum.plus(part.totals()))
    }

    /// Returns the bytes of files that are not saved.
    pub(crate) fn unsaved_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.unsaved_bytes()).sum()
    }

    /// Returns the entry under a name. Loads at most one part.
    pub(crate) async fn find(&self, name: &str, contents: &dyn Contents) -> Result<Option<&Slot>, ContentsError> {
        let Some(part) = self.parts.get(self.part_of(name)) else {
            return Ok(None);
        };
        let items = part.items(contents).await?;
        let found = items.binary_search_by(|(other, _)| (**other).cmp(name));
        Ok(found.ok().map(|at| &items[at].1))
    }

    /// Returns all names in order. Loads all parts.
    pub(crate) async fn items(&self, contents: &dyn Contents) -> Result<Vec<&Item>, ContentsError> {
        load_parts(&self.parts.iter().collect::<Vec<_>>(), contents).await?;
        let mut all = Vec::with_capacity(self.count());
        for part in &self.parts {
            all.extend(part.items(contents).await?);
        }
        Ok(all)
    }

    /// Returns the index with something else under a name; with `None`, without the name. Loads the
    /// part of the name, and rarely some after it.
    pub(crate) async fn with(
        &self,
        name: &str,
        slot: Option<Slot>,
        contents: &dyn Contents,
    ) -> Result<Self, ContentsError> {
        let at = self.part_of(name);
        let Some(part) = self.parts.get(at) else {
            let items = slot.into_iter().map(|slot| (Name::from(name), slot));
            return Ok(Self::from_items(items.collect()));
        };
        let mut items = part.items(contents).await?.clone();
        replace(&mut items, name, slot);
        let count = self.count() - part.count() + items.len();
        if self.parts.len() == 1 {
            return Ok(Self::from_items(items));
        }
        if count <= MAX_WHOLE_ENTRIES {
            let mut all = Vec::with_capacity(count);
            for (index, part) in self.parts.iter().enumerate() {
                if index == at {
                    all.append(&mut items);
                } else {
                    all.extend_from_slice(part.items(contents).await?);
                }
            }
            return Ok(Self::from_items(all));
        }
        self.with_items(at, items, contents).await
    }

    /// Returns the index with other names in a part. Cuts them again, together with the parts after
    /// them until the cuts are the old ones.
    async fn with_items(&self, at: usize, items: Vec<Item>, contents: &dyn Contents) -> Result<Self, ContentsError> {
        let mut parts = self.parts[..at].to_vec();
        let mut after = self.parts[at + 1..].iter();
        let mut cutter = Cutter { rest: items };
        loop {
            parts.extend(std::iter::from_fn(|| cutter.next_part()));
            if cutter.rest.is_empty() {
                break;
            }
            let Some(next) = after.next() else {
                parts.extend(Part::new(cutter.rest));
                break;
            };
            cutter.rest.extend_from_slice(next.items(contents).await?);
        }
        parts.extend(after.cloned());
        Ok(Self { parts })
    }

    fn count(&self) -> usize {
        self.parts.iter().map(|part| part.count()).sum()
    }

    /// Returns the index of the part where a name is, or would be.
    fn part_of(&self, name: &str) -> usize {
        self.parts
            .partition_point(|part| part.first() <= name)
            .saturating_sub(1)
    }
}

/// Cuts names into parts.
struct Cutter {
    /// The names that are not in a part yet.
    rest: Vec<Item>,
}

impl Cutter {
    /// Returns the next part. The rest is no whole part if there is none.
    fn next_part(&mut self) -> Option<Arc<Part>> {
        let length = first_part(self.rest.iter().map(|(name, _)| &**name))?;
        let after = self.rest.split_off(length);
        Part::new(std::mem::replace(&mut self.rest, after))
    }
}

/// Puts something under a name in a sorted list, or removes the name.
fn replace(items: &mut Vec<Item>, name: &str, slot: Option<Slot>) {
    match (items.binary_search_by(|(other, _)| (**other).cmp(name)), slot) {
        (Ok(at), Some(slot)) => items[at].1 = slot,
        (Ok(at), None) => drop(items.remove(at)),
        (Err(at), Some(slot)) => items.insert(at, (Name::from(name), slot)),
        (Err(_), None) => {}
    }
}
