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
    /// Returns whether no search may begin any more. Unsearched text counts as a match and is
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

    /// Returns how many bytes the next texts may grow by.
    pub(super) fn room(&self) -> usize {
        self.room.get()
    }

    /// Returns whether there is something to remove.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        (self.is_over)() || self.patterns.finds_in(text)
    }

    /// Returns the text without what the patterns find; borrowed if they find nothing.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.finds_in(text) {
            return Cow::Borrowed(text);
        }
        let redacted = self.patterns.replaced_in(text, self.most(text), self.is_over);
        Cow::Owned(self.grown(text, redacted))
    }

    /// Makes one text of another by several steps that each take room. Where the outcome is longer
    /// than it may be, it is the other text, which must be short.
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

    /// Returns how many bytes may be made of the text.
    fn most(&self, text: &str) -> usize {
        text.len() + self.room().min(MAX_GROWTH)
    }

    /// Takes room for what was made of the text.
    fn grown(&self, text: &str, redacted: String) -> String {
        let growth = redacted.len().saturating_sub(text.len());
        self.room.set(self.room().saturating_sub(growth));
        redacted
    }
}
