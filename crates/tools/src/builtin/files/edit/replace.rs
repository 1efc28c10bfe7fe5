//! Replaces exact text in the bytes of a file, whose lines may end in any way.

use memchr::memmem::Finder;

use super::mismatch::nearest_line;
use crate::builtin::files::line_ends::{LfText, with_lf};
use crate::builtin::files::text::{counted, line_number};

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
///
/// The text matches as models see the file, with LF at the end of each line. Lines that stay have
/// the ends that they had. A new line ends like the line that it replaces, or like the line next to
/// it.
pub(super) fn replace(file: &[u8], replacement: &Replacement, max_bytes: u64) -> Result<(Vec<u8>, usize), String> {
    let Replacement { old, new, all } = replacement;
    if old == new {
        return Err("old and new are the same".to_owned());
    }
    let mut lf = LfText::of(file);
    let [mut old, mut new] = [old, new].map(|text| with_lf(text, lf.terminator()));
    if old == new {
        // Only the ends of the lines change.
        (lf, old, new) = (
            LfText::exact(file),
            replacement.old.as_str().into(),
            replacement.new.as_str().into(),
        );
    }
    let found = occurrences(&lf.text, &old);
    match found.len() {
        0 => return Err(format!("old is not in the file; {}", nearest_line(file, &old))),
        1 => (),
        count if count > MAX_OCCURRENCES => {
            return Err(format!(
                "old is in the file more than {MAX_OCCURRENCES} times; add text around it"
            ));
        }
        _ if *all => (),
        count => return Err(ambiguous(&lf.text, &found, count)),
    }
    let lines = new_lines(&old, &new);
    let mut replaced = Vec::new();
    let (mut copied, mut following) = (0, None);
    for start in &found {
        let end = start + old.len();
        replaced.extend_from_slice(&file[copied..lf.in_file(*start)]);
        if following.is_none_or(|following| following < end) {
            following = memchr::memchr(b'\n', &lf.text[end..]).map(|next| end + next);
        }
        for line in &lines {
            replaced.extend_from_slice(line.text.as_bytes());
            match line.end {
                None => {}
                Some(offset) if offset < old.len() => replaced.extend_from_slice(lf.end_at(start + offset)),
                Some(_) => replaced.extend_from_slice(lf.end_around(*start, following)),
            }
            if replaced.len() as u64 > max_bytes {
                return Err(too_large(max_bytes));
            }
        }
        copied = lf.in_file(end);
    }
    replaced.extend_from_slice(&file[copied..]);
    if replaced.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok((replaced, found.len()))
}

fn too_large(max_bytes: u64) -> String {
    format!("the file would have more than the {max_bytes} bytes of a file")
}

/// Returns where a text is in a file. Occurrences do not overlap. Stops after one too many.
fn occurrences(file: &[u8], text: &str) -> Vec<usize> {
    let finder = Finder::new(text.as_bytes());
    finder.find_iter(file).take(MAX_OCCURRENCES + 1).collect()
}

/// A line of the new text.
struct NewLine<'a> {
    text: &'a str,
    /// The offset in the old text of the LF whose end it has; past the old text for the end that
    /// follows there in the file. `None` for the rest without an end.
    end: Option<usize>,
}

/// Returns the lines of the new text, each with the line of the old text whose end it takes. Where
/// the texts begin or end alike, this is the same line, and elsewhere the line in its position.
fn new_lines<'a>(old: &str, new: &'a str) -> Vec<NewLine<'a>> {
    let (old_lines, lines): (Vec<_>, Vec<_>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut ends = Vec::with_capacity(old_lines.len());
    for line in &old_lines {
        ends.push(ends.last().map_or(0, |last| last + 1) + line.len());
    }
    let same = |(old, new): &(&&str, &&str)| old == new;
    let begin = old_lines.iter().zip(&lines).take_while(same).count();
    let room = old_lines.len().min(lines.len()) - begin;
    let tail = old_lines
        .iter()
        .rev()
        .zip(lines.iter().rev())
        .take(room)
        .take_while(same)
        .count();
    let last = lines.len() - 1;
    let new_line = |(index, text): (usize, &'a str)| {
        let like = if index + tail >= lines.len() {
            index + old_lines.len() - lines.len()
        } else {
            index.min(old_lines.len() - tail.min(old_lines.len() - 1) - 1)
        };
        let end = (index < last).then(|| ends[like]);
        NewLine { text, end }
    };
    lines.iter().copied().enumerate().map(new_line).collect()
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
        assert_eq!(
            edited("a\r\nb\r\n", "a\r\nb", "c\nd\ne", false).unwrap(),
            "c\r\nd\r\ne\r\n"
        );
        assert_eq!(edited("a\nb\n", "a\r\nb", "c", false).unwrap(), "c\n");
    }

    #[test]
    fn lines_that_stay_have_the_ends_that_they_had() {
        let mixed = "alpha\nbeta\r\ngamma\n";
        for (old, new, expected) in [
            ("alpha\nbeta\ngamma", "alpha\nBETA\ngamma", "alpha\nBETA\r\ngamma\n"),
            ("alpha\nbeta\ngamma\n", "gamma\n", "gamma\n"),
            ("beta", "beta\ndelta", "alpha\nbeta\r\ndelta\r\ngamma\n"),
            ("beta", "delta\nbeta", "alpha\ndelta\r\nbeta\r\ngamma\n"),
            ("beta\ngamma", "beta\ndelta\ngamma", "alpha\nbeta\r\ndelta\r\ngamma\n"),
            ("alpha\nbeta", "alpha\nnew\nbeta", "alpha\nnew\nbeta\r\ngamma\n"),
            (
                "alpha\nbeta\ngamma\n",
                "alpha\nbeta\ngamma\ndelta\n",
                "alpha\nbeta\r\ngamma\ndelta\n",
            ),
            ("alpha\n", "", "beta\r\ngamma\n"),
            ("beta\n", "", "alpha\ngamma\n"),
            ("\ngamma", "gamma", "alpha\nbetagamma\n"),
        ] {
            assert_eq!(edited(mixed, old, new, false).unwrap(), expected, "{old:?} -> {new:?}");
        }
        let both = "x\r\ny\nx\ny\r\n";
        assert_eq!(
            edited(both, "x\ny", "x\nz\ny", true).unwrap(),
            "x\r\nz\r\ny\nx\nz\ny\r\n"
        );
        assert!(
            edited(both, "x\ny", "z", false)
                .unwrap_err()
                .contains("2 times, in the lines 1, 3;")
        );
        assert_eq!(edited("a\rb\rc", "a\nb\n", "a\nB\nd\n", false).unwrap(), "a\rB\rd\rc");
        assert_eq!(edited("a\rb\rc", "b\rc", "d", false).unwrap(), "a\rd");
        assert_eq!(edited("1%\r2%\n", "1%\r2%", "done", false).unwrap(), "done\n");
    }

    #[test]
    fn the_ends_of_lines_can_be_changed() {
        assert_eq!(edited("a\r\nb\r\n", "\r\n", "\n", true).unwrap(), "a\nb\n");
        assert_eq!(edited("a\nb\r\n", "a\n", "a\r\n", false).unwrap(), "a\r\nb\r\n");
        assert_eq!(edited("a\rb", "\r", "\n", true).unwrap(), "a\nb");
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
        assert!(error.contains("would have more than the 33554432 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn an_edit_of_any_ends_is_that_of_the_lines(file in "([ab]{0,3}(\n|\r\n)){0,8}", old in "[ab\n]{1,4}", new in "[abc\n]{0,4}") {
            prop_assume!(old != new);
            let lines = |text: &str| text.replace("\r\n", "\n");
            let expected = edited(&lines(&file), &old, &new, true);
            prop_assert_eq!(edited(&file, &old, &new, true).map(|text| lines(&text)), expected);
        }

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
