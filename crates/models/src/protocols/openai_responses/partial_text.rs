//! A text that arrives in pieces and later as a whole. The whole is authoritative.

/// A text under construction.
#[derive(Debug, Default)]
pub(super) struct PartialText {
    received: String,
    /// The whole text, if it differs from the pieces.
    whole: Option<String>,
}

/// The text of an event.
#[derive(Debug)]
pub(super) enum Fragment {
    /// A piece of a text.
    Piece(String),
    /// The whole text.
    Whole(String),
}

impl PartialText {
    /// Adds a fragment, and returns its new text.
    pub(super) fn take(&mut self, fragment: Fragment) -> String {
        match fragment {
            Fragment::Piece(piece) => {
                self.received.push_str(&piece);
                piece
            }
            Fragment::Whole(whole) => self.set_whole(whole),
        }
    }

    /// Returns the text of the pieces.
    pub(super) fn received(&self) -> &str {
        &self.received
    }

    /// Returns the words so far.
    pub(super) fn text(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.received)
    }

    /// Returns the words.
    pub(super) fn finish(self) -> String {
        self.whole.unwrap_or(self.received)
    }

    /// Sets the whole text, and returns the end of it that no piece had. Ignores an empty text.
    fn set_whole(&mut self, whole: String) -> String {
        if whole.is_empty() {
            return String::new();
        }
        let Some(rest) = whole.strip_prefix(&self.received).map(str::to_owned) else {
            self.whole = Some(whole);
            return String::new();
        };
        self.received = whole;
        self.whole = None;
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_the_truth_and_only_its_rest_is_news() {
        for (pieces, whole, rest, words) in [
            (&["a", "b"][..], "ab", "", "ab"),
            (&["a"], "abc", "bc", "abc"),
            (&[], "abc", "abc", "abc"),
            (&["ab"], "ax", "", "ax"),
            (&["ab"], "a", "", "a"),
            (&["ab"], "", "", "ab"),
        ] {
            let mut made = PartialText::default();
            for piece in pieces {
                made.take(Fragment::Piece((*piece).to_owned()));
            }
            assert_eq!(made.set_whole(whole.to_owned()), rest, "{pieces:?} {whole}");
            assert_eq!(made.finish(), words, "{pieces:?} {whole}");
        }
        let mut made = PartialText::default();
        made.take(Fragment::Piece("ab".to_owned()));
        made.set_whole("x".to_owned());
        assert_eq!(
            made.set_whole("abc".to_owned()),
            "c",
            "a later whole replaces an earlier one"
        );
        assert_eq!(made.received(), "abc");
        assert_eq!(made.finish(), "abc");
    }
}
