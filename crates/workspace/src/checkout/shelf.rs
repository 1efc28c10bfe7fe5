//! The directories of ended runs, which wait for the next run of their line.

use std::collections::VecDeque;

use super::janitor::Retained;
use values::tenant::TenantId;

/// The directories of ended runs.
#[derive(Debug)]
pub(super) struct Shelf {
    /// The oldest first.
    pub(super) retained: VecDeque<Retained>,
    /// The most directories that are retained.
    pub(super) capacity: usize,
}

impl Shelf {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            retained: VecDeque::new(),
            capacity,
        }
    }

    /// Takes the newest directory of a line of sessions.
    pub(super) fn take(&mut self, tenant: &TenantId, line: &str) -> Option<Retained> {
        let is_of_line = |one: &Retained| one.tree.tenant() == tenant && one.directory.line.as_deref() == Some(line);
        let index = self.retained.iter().rposition(is_of_line)?;
        self.retained.remove(index)
    }

    /// Retains a directory. Returns the directory that has no room any more.
    pub(super) fn put(&mut self, directory: Retained) -> Option<Retained> {
        self.retained.push_back(directory);
        if self.retained.len() > self.capacity {
            self.retained.pop_front()
        } else {
            None
        }
    }
}
