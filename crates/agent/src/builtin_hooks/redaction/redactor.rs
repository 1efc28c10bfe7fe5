//! Redacts the texts of one request, completion or input within bounds of size and time.
//!
//! Both bounds are needed. Replacements of many short matches can be far longer than the matches,
//! and finding them can take time that is quadratic in the text.

use std::cell::Cell;

use super::patterns::Patterns;

/// The most bytes by which all texts of a request, a completion or an input may grow together.
pub(super) const MAX_GROWTH: usize = 1 << 20;

/// Redacts one text after the other.
pub(super) struct Redactor<'a> {
    patterns: &'a Patterns,
    /// Returns whether the time is over. No search begins afterwards: text counts as a match and is
    /// withheld.
    is_over: &'a dyn Fn() -> bool,
    /// The bytes that all texts may still grow by.
    room: Cell<usize>,
}

impl<'a> Redactor<'a> {
    /// Redacts texts until the time is over.
    pub(super) fn new(patterns: &'a Patterns, is_over: &'a dyn Fn() -> bool) -> Self {
        Self {
            patterns,
            is_over,
            room: Cell::new(MAX_GROWTH),
        }
    }

    /// Returns whether a text has a match.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        (self.is_over)() || self.patterns.finds_in(text)
    }

    /// Returns a text without its matches; `None` if it has none.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        if !self.finds_in(text) {
            return None;
        }
        let room = self.room.get();
        let redacted = self.patterns.replaced_in(text, text.len() + room, self.is_over);
        let growth = redacted.len().saturating_sub(text.len());
        self.room.set(room.saturating_sub(growth));
        Some(redacted)
    }
}
