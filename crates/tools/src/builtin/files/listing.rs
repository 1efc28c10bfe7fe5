//! Shows one page of a list of entries.

use std::fmt::Write as _;

use serde_json::json;

use agent::ports::ToolError;
use values::json::Value;

/// The entries that a page has, unless the call asks for another number.
pub(super) const DEFAULT_ENTRIES: usize = 200;
/// The most entries of a page.
pub(super) const MAX_ENTRIES: usize = 1_000;

/// A page ends early if it has more bytes.
const MAX_BYTES: usize = 60_000;

/// The noun for the entries of a list: singular and plural.
pub(super) type Nouns = [&'static str; 2];

/// The part of a list that a page shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// The first entry, from 1.
    pub(super) first: usize,
    /// The most entries.
    pub(super) max: usize,
}

impl Page {
    /// Makes the page that a call asks for.
    pub(super) fn new(offset: Option<usize>, limit: Option<usize>) -> Self {
        Self {
            first: offset.unwrap_or(1).max(1),
            max: limit.unwrap_or(DEFAULT_ENTRIES),
        }
    }

    /// Returns the entries of the page, a line each, and a last line that says which part of the
    /// list they are.
    pub(super) fn show<T>(self, entries: &[T], nouns: Nouns, line: impl Fn(&T) -> String) -> Result<String, ToolError> {
        let total = entries.len();
        let count = || format!("{total} {}", nouns[usize::from(total != 1)]);
        if self.first > total {
            let message = format!("entry {} is past the end: there are {}", self.first, count());
            return Err(ToolError::new(message));
        }
        let shown = entries.iter().skip(self.first - 1).take(self.max);
        let mut text = String::new();
        let mut last = self.first - 1;
        for entry in shown {
            text.push_str(&line(entry));
            text.push('\n');
            last += 1;
            if text.len() > MAX_BYTES {
                break;
            }
        }
        // Writing to a string does not fail.
        let _ = if self.first == 1 && last == total {
            write!(text, "[{}]", count())
        } else {
            write!(text, "[{} {} to {last} of {total}", nouns[1], self.first)
        };
        if last < total {
            let _ = write!(text, "; read on with offset {}]", last + 1);
        } else if self.first > 1 {
            text.push(']');
        }
        Ok(text)
    }
}

/// Returns the schemas of the arguments `offset` and `limit`.
pub(super) fn page_schemas() -> [Value; 2] {
    [
        json!({
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000_000,
            "description": "The number of the first entry to show, from 1. Use it to read on in a long list.",
        }),
        json!({
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_ENTRIES,
            "description": "The most entries to show, 200 by default.",
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(total: usize, offset: Option<usize>, limit: Option<usize>) -> Result<String, String> {
        let entries: Vec<_> = (1..=total).collect();
        let text = Page::new(offset, limit).show(&entries, ["file", "files"], usize::to_string);
        text.map_err(|error| error.message)
    }

    #[test]
    fn a_page_says_which_part_of_the_list_it_is() {
        assert_eq!(shown(1, None, None).unwrap(), "1\n[1 file]");
        assert_eq!(shown(3, None, Some(3)).unwrap(), "1\n2\n3\n[3 files]");
        assert_eq!(
            shown(3, None, Some(2)).unwrap(),
            "1\n2\n[files 1 to 2 of 3; read on with offset 3]"
        );
        assert_eq!(shown(3, Some(3), Some(2)).unwrap(), "3\n[files 3 to 3 of 3]");
        assert_eq!(
            shown(3, Some(4), None).unwrap_err(),
            "entry 4 is past the end: there are 3 files"
        );
    }
}
