//! The bytes of a file: whether they are text, and their lines.

use std::fmt::Write as _;

use memchr::memchr_iter;

use super::line_ends::terminator;

/// The byte order mark, which some editors write at the beginning of a file.
pub(super) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file with a NUL byte in its first bytes is binary, as git has it.
const BINARY_PREFIX: usize = 8_000;
/// The most bytes of a line that an error shows.
const MAX_QUOTED: usize = 200;

/// Returns whether a file is binary.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PREFIX)].contains(&0)
}

/// Returns the number of lines of a file. A last line without an end counts.
pub(super) fn line_count(bytes: &[u8]) -> usize {
    let terminator = terminator(bytes);
    let ends = memchr_iter(terminator, bytes).count();
    let has_rest = bytes.last().is_some_and(|last| *last != terminator);
    ends + usize::from(has_rest)
}

/// Iterates over the lines of a file, without their ends.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let terminator = terminator(bytes);
    bytes.split_inclusive(move |byte| *byte == terminator).map(without_end)
}

/// Returns a line without its end, which is LF, CRLF or CR.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns a file without its byte order mark, which is no part of the first line.
pub(super) fn without_mark(file: &[u8]) -> &[u8] {
    file.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(file)
}

/// Returns the number of the line that has the byte at an offset, from 1.
pub(super) fn line_number(bytes: &[u8], offset: usize) -> usize {
    memchr_iter(b'\n', &bytes[..offset.min(bytes.len())]).count() + 1
}

/// Adds a line to a text, with a note in place of the part beyond the limit. Invalid UTF-8 is
/// replaced.
pub(super) fn push_cut(text: &mut String, line: &[u8], max_bytes: usize) {
    if line.len() <= max_bytes {
        text.push_str(&String::from_utf8_lossy(line));
        return;
    }
    // A character has at most four bytes.
    let mut end = max_bytes;
    while end > max_bytes.saturating_sub(3) && line[end] & 0b1100_0000 == 0b1000_0000 {
        end -= 1;
    }
    text.push_str(&String::from_utf8_lossy(&line[..end]));
    // Writing to a string does not fail.
    let _ = write!(text, "… [{} more bytes]", line.len() - end);
}

/// Returns a line as an error shows it.
pub(super) fn quoted(line: &[u8]) -> String {
    let mut shown = "`".to_owned();
    push_cut(&mut shown, line, MAX_QUOTED);
    shown.push('`');
    shown
}

/// Adds the part of a line around an offset, with notes in place of the parts before and after it.
pub(super) fn push_around(text: &mut String, line: &[u8], offset: usize, max_bytes: usize) {
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let mut begin = offset.saturating_sub(max_bytes / 2);
    while begin > 0 && is_inside(begin) {
        begin -= 1;
    }
    if begin > 0 {
        // Writing to a string does not fail.
        let _ = write!(text, "[{begin} bytes before] …");
    }
    push_cut(text, &line[begin.min(line.len())..], max_bytes);
}

/// Returns a number with its noun, such as `1 line` or `2 lines`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_numbered() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("\n\n", 2),
            ("a\r\nb\r\n", 2),
            ("a\rb", 2),
            ("a\r", 1),
        ] {
            assert_eq!(line_count(text.as_bytes()), count, "{text:?}");
            assert_eq!(lines(text.as_bytes()).count(), count, "{text:?}");
        }
        assert_eq!(lines(b"a\r\nb\rc\n").collect::<Vec<_>>(), [&b"a"[..], b"b\rc"]);
        assert_eq!((line_number(b"a\nb\nc", 0), line_number(b"a\nb\nc", 4)), (1, 3));
        assert_eq!(line_number(b"a\n", 99), 2);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let cut = |line: &str, max| {
            let mut text = String::new();
            push_cut(&mut text, line.as_bytes(), max);
            text
        };
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc… [1 more bytes]");
        assert_eq!(cut("aé€x", 4), "aé… [4 more bytes]");
        assert_eq!(cut("ééé", 0), "… [6 more bytes]");
        let mut text = String::new();
        push_cut(&mut text, &[0x80; 9], 5);
        assert_eq!(text, "��… [7 more bytes]");
    }

    #[test]
    fn a_nul_near_the_beginning_means_binary() {
        assert!(is_binary(b"a\0b") && !is_binary(b"") && !is_binary(&[0xff; 9]));
        let late = [vec![b'a'; BINARY_PREFIX], vec![0]].concat();
        assert!(!is_binary(&late));
    }
}
