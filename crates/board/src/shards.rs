//! Several values, each for a group of runs, so that runs rarely wait for each other's lock.

use parking_lot::{Mutex, MutexGuard};

use values::ids::RunId;

const COUNT: usize = 16;

/// Values with a lock each. A run always has the same one.
#[derive(Debug, Default)]
pub(super) struct Sharded<T> {
    shards: [Mutex<T>; COUNT],
}

impl<T> Sharded<T> {
    /// Locks the value of a run. Never lock two values at the same time.
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
