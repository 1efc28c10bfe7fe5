//! A part of a long text, and how to get the next one. No IO.

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<'t> {
    text: &'t str,
    start: usize,
    total: usize,
}

impl<'t> Page<'t> {
    /// Returns at most `max_bytes` of a text, and at least one character, from the first whole
    /// character at or after `offset`.
    pub(super) fn of(text: &'t str, offset: usize, max_bytes: usize) -> Self {
        let start = text.ceil_char_boundary(offset.min(text.len()));
        let rest = &text[start..];
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest.floor_char_boundary(max_bytes).max(first);
        Self {
            text: &rest[..end],
            start,
            total: text.len(),
        }
    }

    /// Appends the part, after a note if it is not the whole text.
    pub(super) fn write(&self, text: &mut String) {
        let (start, total) = (self.start, self.total);
        let end = start + self.text.len();
        let note = if start >= total && start > 0 {
            format!("[the text has only {total} bytes]\n")
        } else if end < total {
            format!("[bytes {start} to {end} of {total} of the text; read on with \"offset\": {end}]\n")
        } else if start > 0 {
            format!("[bytes {start} to {end}, the end of the text]\n")
        } else {
            String::new()
        };
        text.push_str(&note);
        text.push('\n');
        text.push_str(self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_cut_no_character() {
        let text = "aébc€d";
        for max_bytes in 1..=text.len() + 1 {
            let (mut whole, mut offset) = (String::new(), 0);
            while offset < text.len() {
                let page = Page::of(text, offset, max_bytes);
                assert!(!page.text.is_empty());
                assert_eq!(page.start, offset);
                whole.push_str(page.text);
                offset += page.text.len();
            }
            assert_eq!(whole, text, "{max_bytes}");
        }
    }

    #[test]
    fn a_note_names_the_next_part() {
        for (offset, max_bytes, expected) in [
            (0, 10, "\nabcdef"),
            (
                0,
                2,
                "[bytes 0 to 2 of 6 of the text; read on with \"offset\": 2]\n\nab",
            ),
            (
                2,
                2,
                "[bytes 2 to 4 of 6 of the text; read on with \"offset\": 4]\n\ncd",
            ),
            (4, 2, "[bytes 4 to 6, the end of the text]\n\nef"),
            (6, 2, "[the text has only 6 bytes]\n\n"),
            (usize::MAX, 2, "[the text has only 6 bytes]\n\n"),
        ] {
            let mut written = String::new();
            Page::of("abcdef", offset, max_bytes).write(&mut written);
            assert_eq!(written, expected);
        }
        let mut written = String::new();
        Page::of("", 0, 2).write(&mut written);
        assert_eq!(written, "\n");
    }
}
