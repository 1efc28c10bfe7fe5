//! A text that arrives in pieces and later as a whole. The whole is authoritative.

/// Words in the making.
#[derive(Debug, Default)]
pub(super) struct Words {
    said: String,
    /// The whole, where it is not what the pieces say.
    whole: Option<String>,
}

impl Words {
    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &str) {
        self.said.push_str(piece);
    }

    /// Takes the whole and returns the end of it that no piece has said. An empty whole says nothing about the pieces.
    pub(super) fn settle(&mut self, whole: String) -> String {
        if whole.is_empty() {
            return String::new();
        }
        let Some(rest) = whole.strip_prefix(&self.said).map(str::to_owned) else {
            self.whole = Some(whole);
            return String::new();
        };
        self.said = whole;
        self.whole = None;
        rest
    }

    /// Returns what the pieces have said.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Returns the words.
    pub(super) fn finish(self) -> String {
        self.whole.unwrap_or(self.said)
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
            let mut made = Words::default();
            for piece in pieces {
                made.add(piece);
            }
            assert_eq!(made.settle(whole.to_owned()), rest, "{pieces:?} {whole}");
            assert_eq!(made.finish(), words, "{pieces:?} {whole}");
        }
        let mut made = Words::default();
        made.add("ab");
        made.settle("x".to_owned());
        assert_eq!(
            made.settle("abc".to_owned()),
            "c",
            "a later whole replaces an earlier one"
        );
        assert_eq!(made.said(), "abc");
        assert_eq!(made.finish(), "abc");
    }
}
