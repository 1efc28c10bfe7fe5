//! Replaces exact text in the bytes of a file. Works with lines that end with CRLF, also if the
//! model writes LF.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::mismatch::nearest_line;
use crate::tools::builtin::files::text::{counted, line_number};

/// The most line numbers that an error lists.
const MAX_LISTED: usize = 10;
/// The most occurrences that are replaced.
const MAX_OCCURRENCES: usize = 1_000_000;

/// A replacement that the model asks for.
#[derive(Debug, Clone, serde::Deserialize)]
pub(super) struct Replacement {
    /// The exact text that is replaced.
    pub(super) old: String,
    /// The text instead.
    pub(super) new: String,
    /// Whether every occurrence is replaced.
    #[serde(default)]
    pub(super) all: bool,
}

/// Replaces text in a file, and returns the number of replacements. The error is for the model.
pub(super) fn replace(file: &[u8], replacement: &Replacement, max_bytes: u64) -> Result<(Vec<u8>, usize), String> {
    let Replacement { old, new, all } = replacement;
    if old == new {
        return Err("old and new are the same".to_owned());
    }
    let [mut old, mut new] = [old, new].map(|text| Cow::Borrowed(text.as_str()));
    let mut found = occurrences(file, &old);
    if found.is_empty() || has_only_crlf(file) {
        // The model read the lines without their ends, so it can't know them.
        let [old_crlf, new_crlf] = [&old, &new].map(|text| with_crlf(text));
        let found_crlf = occurrences(file, &old_crlf);
        if !found_crlf.is_empty() {
            (old, new, found) = (old_crlf, new_crlf, found_crlf);
        }
    }
    match found.len() {
        0 => return Err(format!("old is not in the file; {}", nearest_line(file, &old))),
        1 => (),
        count if count > MAX_OCCURRENCES => {
            return Err(format!(
                "old is in the file more than {MAX_OCCURRENCES} times; add text around it"
            ));
        }
        _ if *all => (),
        count => return Err(ambiguous(file, &found, count)),
    }
    let size = (file.len() - found.len() * old.len()) as u64 + (found.len() as u64) * (new.len() as u64);
    if size > max_bytes {
        return Err(format!(
            "the file would have {size} bytes, more than the {max_bytes} of a file"
        ));
    }
    let mut replaced = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let mut end = 0;
    for start in &found {
        replaced.extend_from_slice(&file[end..*start]);
        replaced.extend_from_slice(new.as_bytes());
        end = start + old.len();
    }
    replaced.extend_from_slice(&file[end..]);
    Ok((replaced, found.len()))
}

/// Returns where a text is in a file. Occurrences do not overlap. Stops after one too many.
fn occurrences(file: &[u8], text: &str) -> Vec<usize> {
    let finder = Finder::new(text.as_bytes());
    finder.find_iter(file).take(MAX_OCCURRENCES + 1).collect()
}

/// Returns whether every line ends with CRLF, and there is one.
fn has_only_crlf(file: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', file).peekable();
    ends.peek().is_some() && ends.all(|end| end > 0 && file[end - 1] == b'\r')
}

/// Returns the text with CRLF for each LF and each CRLF.
fn with_crlf<'a>(text: &str) -> Cow<'a, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

fn ambiguous(file: &[u8], found: &[usize], count: usize) -> String {
    let (mut number, mut counted_to) = (1, 0);
    let mut numbers = Vec::new();
    for start in found.iter().take(MAX_LISTED) {
        number += line_number(&file[counted_to..], start - counted_to) - 1;
        counted_to = *start;
        numbers.push(number.to_string());
    }
    let more = if count > MAX_LISTED { " and more" } else { "" };
    format!(
        "old is in the file {}, in the lines {}{more}; add lines around it so that it is there once, or set all to \
         true to replace every occurrence",
        counted(count, "time"),
        numbers.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edited(file: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        let [old, new] = [old, new].map(str::to_owned);
        let (bytes, _) = replace(file.as_bytes(), &Replacement { old, new, all }, 1 << 20)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn exact_text_is_replaced_once_or_everywhere() {
        assert_eq!(edited("a b a", "b", "c", false).unwrap(), "a c a");
        assert_eq!(edited("a b a", "a", "", true).unwrap(), " b ");
        assert_eq!(edited("aaa", "aa", "b", true).unwrap(), "ba");
        assert_eq!(edited("x", "x", "xx", true).unwrap(), "xx");
        assert_eq!(edited("a", "a", "a", false).unwrap_err(), "old and new are the same");
    }

    #[test]
    fn several_matches_are_an_error_with_their_lines() {
        let error = edited("a\nb\na a\n", "a", "c", false).unwrap_err();
        assert!(error.contains("3 times, in the lines 1, 3, 3;"), "{error}");
        let error = edited(&"a\n".repeat(50), "a", "c", false).unwrap_err();
        assert!(
            error.contains("50 times") && error.contains("9, 10 and more;"),
            "{error}"
        );
    }

    #[test]
    fn files_with_crlf_are_edited_with_lf_and_stay_as_they_are() {
        assert_eq!(
            edited("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false).unwrap(),
            "x\r\ny\r\nz\r\nc\r\n"
        );
        assert_eq!(edited("a\r\nb\r\n", "b", "b\nc", false).unwrap(), "a\r\nb\r\nc\r\n");
        assert_eq!(edited("a\r\nb\r\n", "a\r\nb", "c\r\nd", false).unwrap(), "c\r\nd\r\n");
        // A file with both ends is edited literally, if that is possible.
        assert_eq!(edited("a\nb\r\nc\n", "a\nb", "x\ny", false).unwrap(), "x\ny\r\nc\n");
        assert_eq!(edited("a\nb\r\nc\n", "b\nc", "x\ny", false).unwrap(), "a\nx\r\ny\n");
        assert_eq!(
            edited("a\nb\n", "a\r\nb", "c", false).unwrap_err().split(';').next(),
            Some("old is not in the file")
        );
    }

    #[test]
    fn the_result_is_bounded_before_it_is_made() {
        let replacement = Replacement {
            old: "a".to_owned(),
            new: "b".repeat(1 << 20),
            all: true,
        };
        let file = vec![b'a'; 1 << 19];
        let error = replace(&file, &replacement, 32 << 20).unwrap_err();
        assert!(error.contains("would have 549755813888 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn an_edit_is_like_the_replacement_of_strings(file in "[ab\n]{0,40}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
            prop_assume!(old != new);
            let expected = file.replace(&old, &new);
            match edited(&file, &old, &new, true) {
                Ok(text) => prop_assert_eq!(text, expected),
                Err(_) => prop_assert!(!file.contains(&old)),
            }
        }
    }
}
