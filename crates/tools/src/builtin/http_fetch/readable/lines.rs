//! Collects text in lines and paragraphs, with single spaces. No IO.

/// The gap before the next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    gap: Gap,
    /// The beginning of the next line.
    begin: String,
    is_verbatim: bool,
}

impl Lines {
    /// Appends text. White space is one space, except within verbatim text.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_verbatim {
            self.open_gap();
            self.text.push_str(text);
            return;
        }
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.gap = self.gap.max(Gap::Space);
            }
            if !word.is_empty() {
                self.open_gap();
                self.text.push_str(word);
            }
        }
    }

    /// Ends a line.
    pub(super) fn end_line(&mut self) {
        self.gap = self.gap.max(Gap::Line);
        self.begin.clear();
    }

    /// Ends a paragraph.
    pub(super) fn end_paragraph(&mut self) {
        self.gap = Gap::Paragraph;
        self.begin.clear();
    }

    /// Begins a line with this text, if the line has any other.
    pub(super) fn begin_with(&mut self, begin: &str) {
        self.end_line();
        begin.clone_into(&mut self.begin);
    }

    /// Begins a cell of a table.
    pub(super) fn cell(&mut self) {
        if self.gap < Gap::Line && !self.text.is_empty() && self.begin.is_empty() {
            self.gap = Gap::None;
            self.text.push_str(" | ");
        }
    }

    /// Ends a link.
    pub(super) fn end_link(&mut self, address: &str) {
        self.text.extend(["](", address, ")"]);
    }

    /// Begins or ends verbatim text.
    pub(super) fn set_verbatim(&mut self, is_verbatim: bool) {
        self.is_verbatim = is_verbatim;
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        let end = self.text.trim_end().len();
        let mut text = self.text;
        text.truncate(end);
        text
    }

    fn open_gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::None;
        self.text.push_str(&std::mem::take(&mut self.begin));
    }
}
