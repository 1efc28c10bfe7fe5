//! Splits off the reasoning that some servers leave at the beginning of the text, between `<think>`
//! and `</think>`.
//!
//! Knows no JSON. Each character is read once, however the text is split.

/// The tags around the reasoning.
const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The text of one completion, as it arrives.
#[derive(Debug, Default)]
pub(super) struct ThinkSplit {
    phase: Phase,
    /// Blanks that may precede a tag.
    blanks: String,
    /// The length of the part of the expected tag that has arrived.
    matched: usize,
    /// Whether there is any reasoning. Leading blanks do not count.
    has_thought: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Only blanks and a part of the opening tag have arrived.
    #[default]
    Start,
    /// After the opening tag.
    Thinking,
    /// After the closing tag. Only blanks have arrived since.
    Between,
    /// In the text after the reasoning.
    Words,
}

/// The additions of a piece.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// To the reasoning.
    pub(super) reasoning: String,
    /// To the text.
    pub(super) text: String,
}

impl ThinkSplit {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &str) -> Split {
        let mut split = Split::default();
        for (position, c) in piece.char_indices() {
            if self.phase == Phase::Words {
                split.text.push_str(&piece[position..]);
                break;
            }
            self.take(c, &mut split);
        }
        split
    }

    /// Ends the text. A partial tag becomes text. Blanks alone are dropped.
    pub(super) fn finish(&mut self) -> Split {
        let mut split = Split::default();
        if self.matched > 0 {
            self.release(&mut split);
        }
        self.phase = Phase::Words;
        split
    }

    fn take(&mut self, c: char, split: &mut Split) {
        match self.phase {
            Phase::Words => split.text.push(c),
            Phase::Between if c.is_whitespace() => {}
            Phase::Between => {
                self.phase = Phase::Words;
                split.text.push(c);
            }
            Phase::Start | Phase::Thinking => self.scan_for_tag(c, split),
        }
    }

    fn scan_for_tag(&mut self, c: char, split: &mut Split) {
        let tag = self.tag();
        if tag[self.matched..].starts_with(c) {
            self.matched += c.len_utf8();
            if self.matched == tag.len() {
                let is_open = self.phase == Phase::Start;
                self.phase = if is_open { Phase::Thinking } else { Phase::Between };
                self.blanks.clear();
                self.matched = 0;
            }
            return;
        }
        if self.matched > 0 {
            self.release(split);
            return self.take(c, split);
        }
        if c.is_whitespace() {
            self.blanks.push(c);
        } else {
            self.release(split);
            self.take_plain(c, split);
        }
    }

    /// Releases the text that was held back for a tag that did not follow.
    fn release(&mut self, split: &mut Split) {
        let tag = &self.tag()[..self.matched];
        let mut held = std::mem::take(&mut self.blanks);
        self.matched = 0;
        if self.phase == Phase::Start {
            self.phase = Phase::Words;
            split.text.push_str(&(held + tag));
        } else {
            if !self.has_thought {
                held.clear();
            }
            self.has_thought = true;
            split.reasoning.push_str(&(held + tag));
        }
    }

    fn take_plain(&mut self, c: char, split: &mut Split) {
        match self.phase {
            Phase::Thinking => split.reasoning.push(c),
            _ => split.text.push(c),
        }
    }

    fn tag(&self) -> &'static str {
        match self.phase {
            Phase::Start => OPEN,
            _ => CLOSE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize) -> (String, String) {
        let mut splitter = ThinkSplit::default();
        let chars: Vec<char> = text.chars().collect();
        let mut splits: Vec<Split> = chars
            .chunks(size)
            .map(|piece| splitter.push(&piece.iter().collect::<String>()))
            .collect();
        splits.push(splitter.finish());
        let reasoning = splits.iter().map(|split| split.reasoning.as_str()).collect();
        let text = splits.iter().map(|split| split.text.as_str()).collect();
        (reasoning, text)
    }

    #[test]
    fn what_stands_between_the_tags_is_reasoning_however_it_is_cut() {
        for (text, reasoning, words) in [
            ("<think>a</think>b", "a", "b"),
            (
                "<think>\nHm, 2 < 3.\n\nSo.\n</think>\n\nb\n",
                "Hm, 2 < 3.\n\nSo.",
                "b\n",
            ),
            ("\n <think>é</think> ü", "é", "ü"),
            ("<think>\n\n</think>\n\nb", "", "b"),
            ("<think></think>b", "", "b"),
            ("<think>a</think>", "a", ""),
            ("<think>a <</think", "a <</think", ""),
            ("<think>a<</think>b", "a<", "b"),
            ("<think>a</thin </think>b", "a</thin", "b"),
            ("<think>still at it", "still at it", ""),
            ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
            ("b <think>a</think>", "", "b <think>a</think>"),
            ("</think>b", "", "</think>b"),
            ("<thin", "", "<thin"),
            ("<<think>a", "", "<<think>a"),
            ("  plain", "", "  plain"),
            ("<Think>a</Think>", "", "<Think>a</Think>"),
            ("", "", ""),
            ("\n\n", "", ""),
        ] {
            for size in 1..=text.chars().count().max(1) {
                let got = split(text, size);
                assert_eq!(
                    got,
                    (reasoning.to_owned(), words.to_owned()),
                    "{text:?} in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn long_words_in_small_pieces_take_linear_time() {
        let text = format!("<think>{}{}</think>b", " ".repeat(1 << 20), "</thin".repeat(1 << 18));
        let start = std::time::Instant::now();
        assert_eq!(split(&text, 1).1, "b");
        // Quadratic work would take hours.
        assert!(start.elapsed() < std::time::Duration::from_mins(1));
    }
}
