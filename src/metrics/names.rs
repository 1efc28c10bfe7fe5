//! Bounds the series of names that callers can make up.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

/// The most names with series of their own.
const MAX_NAMES: usize = 100;
/// What all further names are called.
pub(super) const OTHER: &str = "other";

/// Metrics by name. All names beyond the first hundred share the metrics of `other`.
pub(super) struct ByName<K, M> {
    known: RwLock<HashMap<K, Arc<M>>>,
    other: OnceLock<Arc<M>>,
}

impl<K, M> Default for ByName<K, M> {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
            other: OnceLock::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, M> ByName<K, M> {
    /// Returns the metrics of a name. `make` makes them for the name, or for `None` if there are
    /// too many.
    pub(super) fn of(&self, name: &K, make: impl FnOnce(Option<&K>) -> M) -> Arc<M> {
        let is_full = {
            let known = self.known.read();
            if let Some(found) = known.get(name) {
                return Arc::clone(found);
            }
            known.len() >= MAX_NAMES
        };
        if !is_full {
            let mut known = self.known.write();
            if let Some(found) = known.get(name) {
                return Arc::clone(found);
            }
            if known.len() < MAX_NAMES {
                let made = Arc::new(make(Some(name)));
                known.insert(name.clone(), Arc::clone(&made));
                return made;
            }
        }
        Arc::clone(self.other.get_or_init(|| Arc::new(make(None))))
    }
}

impl<K, M> fmt::Debug for ByName<K, M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.known.read().len();
        formatter
            .debug_struct("ByName")
            .field("names", &names)
            .finish_non_exhaustive()
    }
}
