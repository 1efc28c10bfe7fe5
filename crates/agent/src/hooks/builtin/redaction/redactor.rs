//! Redacts the texts of one request, completion or input within bounds of size and time.
//!
//! Both bounds are needed. Replacements of many short matches can be far longer than the matches,
//! and finding them can take time that is quadratic in the text.

use std::borrow::Cow;
use std::cell::Cell;

use super::patterns::Patterns;

/// The most bytes by which a text may grow.
pub(super) const MAX_GROWTH: usize = 64 << 10;
/// The most bytes by which all texts of a request, a completion or an input may grow together.
pub(super) const MAX_GROWTH_OF_ALL: usize = 1 << 20;

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
            room: Cell::new(MAX_GROWTH_OF_ALL),
        }
    }

    /// Returns by how many bytes the next texts may still grow together.
    pub(super) fn room(&self) -> usize {
        self.room.get()
    }

    /// Returns whether a text has a match.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        (self.is_over)() || self.patterns.finds_in(text)
    }

    /// Redacts matches in a text. Borrows the text if there are none.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.finds_in(text) {
            return Cow::Borrowed(text);
        }
        let redacted = self.patterns.replaced_in(text, self.most(text), self.is_over);
        Cow::Owned(self.grown(text, redacted))
    }

    /// Redacts a text with `make`, whose steps may each use up room. Counts only the growth of the
    /// result. If the result is too long, returns the text of `otherwise`, which must be short.
    pub(super) fn bounded(
        &self,
        text: &str,
        make: impl FnOnce() -> String,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        let before = self.room();
        let most = self.most(text);
        let made = make();
        self.room.set(before);
        let made = if made.len() <= most { made } else { otherwise() };
        self.grown(text, made)
    }

    /// Returns the most bytes that a redacted text may have.
    fn most(&self, text: &str) -> usize {
        text.len() + self.room().min(MAX_GROWTH)
    }

    /// Subtracts the growth of a redacted text from the room.
    fn grown(&self, text: &str, redacted: String) -> String {
        let growth = redacted.len().saturating_sub(text.len());
        self.room.set(self.room().saturating_sub(growth));
        redacted
    }
}
