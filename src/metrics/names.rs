//! Bounds the series of names that callers can make up.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

/// What all further names are called.
pub(super) const OTHER: &str = "other";

/// Metrics by name. All names beyond the first `MAX` share the metrics of `other`.
pub(super) struct ByName<K, M, const MAX: usize> {
    known: RwLock<HashMap<K, Arc<M>>>,
    other: OnceLock<Arc<M>>,
}

impl<K, M, const MAX: usize> Default for ByName<K, M, MAX> {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
            other: OnceLock::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, M, const MAX: usize> ByName<K, M, MAX> {
    /// Returns the metrics of a name. `make` makes them for the name, or for `None` if there are
    /// too many.
    pub(super) fn of(&self, name: &K, make: impl FnOnce(Option<&K>) -> M) -> Arc<M> {
        let is_full = {
            let known = self.known.read();
            if let Some(found) = known.get(name) {
                return Arc::clone(found);
            }
            known.len() >= MAX
        };
        if !is_full {
            let mut known = self.known.write();
            if let Some(found) = known.get(name) {
                return Arc::clone(found);
            }
            if known.len() < MAX {
                let made = Arc::new(make(Some(name)));
                known.insert(name.clone(), Arc::clone(&made));
                return made;
            }
        }
        self.other(|| make(None))
    }

    /// Returns the metrics of a name that has its own, or those of all others.
    pub(super) fn known(&self, name: &K, make_other: impl FnOnce() -> M) -> Arc<M> {
        let known = self.known.read().get(name).map(Arc::clone);
        known.unwrap_or_else(|| self.other(make_other))
    }

    fn other(&self, make: impl FnOnce() -> M) -> Arc<M> {
        Arc::clone(self.other.get_or_init(|| Arc::new(make())))
    }
}

impl<K, M, const MAX: usize> fmt::Debug for ByName<K, M, MAX> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.known.read().len();
        formatter
            .debug_struct("ByName")
            .field("names", &names)
            .finish_non_exhaustive()
    }
}
