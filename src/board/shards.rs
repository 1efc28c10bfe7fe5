//! A value per group of runs, so that runs rarely wait for each other's lock.

use parking_lot::{Mutex, MutexGuard};

use crate::ids::RunId;

const COUNT: usize = 16;

/// Some values behind a lock each; a run always meets the same one.
#[derive(Debug, Default)]
pub(super) struct Sharded<T> {
    shards: [Mutex<T>; COUNT],
}

impl<T> Sharded<T> {
    /// Locks the value of a run. No two may be locked at once.
    pub(super) fn of(&self, run_id: RunId) -> MutexGuard<'_, T> {
        // The last bits of an id are random.
        let last = run_id.as_uuid().as_bytes()[15];
        self.shards[usize::from(last) % COUNT].lock()
    }

    /// Locks each value in turn.
    pub(super) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.shards.iter().map(Mutex::lock)
    }
}
