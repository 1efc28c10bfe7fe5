//! The pages and time ranges of lists. All lists page by key, newest first.

use values::clock::Timestamp;

/// A page of a list that is ordered by key, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// Only rows with an older key.
    pub before: Option<K>,
    /// The most rows.
    pub limit: u32,
}

/// A range of times; an absent end is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant inside.
    pub from: Option<Timestamp>,
    /// The first instant after.
    pub until: Option<Timestamp>,
}
