//! The runs whose events somebody reads at this process.

use std::collections::HashMap;

use parking_lot::Mutex;

use values::ids::RunId;

/// Counts the readers of each run.
#[derive(Debug, Default)]
pub(in crate::run) struct EventReaders(Mutex<HashMap<RunId, usize>>);

impl EventReaders {
    /// Adds a reader.
    pub(in crate::run) fn enter(&self, run_id: RunId) {
        *self.0.lock().entry(run_id).or_default() += 1;
    }

    /// Removes a reader.
    pub(in crate::run) fn leave(&self, run_id: RunId) {
        let mut readers = self.0.lock();
        if let Some(count) = readers.get_mut(&run_id) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&run_id);
            }
        }
    }

    /// Returns whether a run has a reader.
    pub(in crate::run) fn has(&self, run_id: RunId) -> bool {
        self.0.lock().contains_key(&run_id)
    }
}
