//! Writes the matching lines of one file for the model, with the lines around them.

use std::fmt::Write as _;
use std::ops::{ControlFlow, Range};

use super::search::{End, OutOfTime, Query, search};
use crate::builtin::files::line_ends::terminator;
use crate::builtin::files::text::{push_around, without_end, without_mark};
use workspace::FilePath;

/// The most bytes of a line that are shown.
const MAX_LINE_BYTES: usize = 500;

/// The form of the result for a file with matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Lines,
    /// The path.
    Files,
    /// The path, and how many lines match.
    Count,
}

/// How the matches of a file are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Display {
    pub(super) mode: Mode,
    /// The lines that are shown before and after a match.
    pub(super) context: usize,
    /// The most matches that are shown.
    pub(super) max_matches: usize,
    /// The text ends when it has more bytes.
    pub(super) max_bytes: usize,
}

/// The matches of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileMatches {
    /// The text for the model; empty if nothing matches.
    pub(super) text: String,
    /// How many lines match, as far as they were searched.
    pub(super) count: usize,
    /// Whether there are more matches than are shown.
    pub(super) is_cut: bool,
    /// Whether the time ended before the file did.
    pub(super) is_out_of_time: bool,
}

/// Searches a file, and shows its matches.
pub(super) fn matches_of(path: &FilePath, file: &[u8], query: &Query, display: Display, end: &End) -> FileMatches {
    let file = without_mark(file);
    let mut matches = FileMatches::default();
    let mut lines = Lines {
        file,
        terminator: terminator(file),
        next: 0,
        number: 1,
    };
    let text = &mut matches.text;
    let (count, is_cut) = (&mut matches.count, &mut matches.is_cut);
    let ended = search(file, query, end, |line, number| {
        if display.mode == Mode::Lines && (*count >= display.max_matches || text.len() > display.max_bytes) {
            *is_cut = true;
            return ControlFlow::Break(());
        }
        *count += 1;
        match display.mode {
            Mode::Files => return ControlFlow::Break(()),
            Mode::Count => (),
            Mode::Lines => {
                // A line that is cut is shown where it matches.
                let is_long = line.len() > MAX_LINE_BYTES;
                let matched = is_long.then(|| query.position(&file[line.clone()])).flatten();
                lines.show(text, &line, number, (display.context, matched.unwrap_or_default()));
            }
        }
        ControlFlow::Continue(())
    });
    if lines.next > 0 {
        lines.show_after(text, display.context);
    }
    matches.is_out_of_time = ended == Err(OutOfTime);
    if matches.count > 0 {
        matches.text = match display.mode {
            Mode::Files => format!("{path}\n"),
            Mode::Count => format!("{path}: {}\n", matches.count),
            Mode::Lines => format!("{path}\n{}\n", matches.text),
        };
    }
    matches
}

/// The lines of a file that are being shown.
struct Lines<'a> {
    file: &'a [u8],
    /// The byte that ends them.
    terminator: u8,
    /// Where the next line begins that is not shown yet.
    next: usize,
    number: usize,
}

impl Lines<'_> {
    /// Shows a matching line, the lines before it, and the lines after the match before it.
    fn show(&mut self, text: &mut String, line: &Range<usize>, number: usize, (context, matched): (usize, usize)) {
        let is_first = self.next == 0;
        if !is_first {
            self.show_after(text, context.min(number - self.number));
        }
        let (mut begin, mut before) = (line.start, 0);
        while before < context && begin > self.next {
            begin = memchr::memrchr(self.terminator, &self.file[..begin - 1]).map_or(0, |end| end + 1);
            before += 1;
        }
        let first = number - before;
        if !is_first && first > self.number && context > 0 {
            text.push_str("--\n");
        }
        (self.next, self.number) = (begin, first);
        self.show_after(text, before);
        self.push(text, ':', matched);
    }

    /// Shows lines that do not match.
    fn show_after(&mut self, text: &mut String, count: usize) {
        for _ in 0..count {
            self.push(text, '-', 0);
        }
    }

    /// Shows the next line, and a long one around an offset.
    fn push(&mut self, text: &mut String, sign: char, offset: usize) {
        let rest = &self.file[self.next..];
        let length = memchr::memchr(self.terminator, rest).map_or(rest.len(), |end| end + 1);
        if length == 0 {
            return;
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{}{sign} ", self.number);
        push_around(text, without_end(&rest[..length]), offset, MAX_LINE_BYTES);
        text.push('\n');
        self.next += length;
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio_util::sync::CancellationToken;

    use super::*;

    fn shown(file: &str, pattern: &str, mode: Mode, context: usize, max_matches: usize) -> FileMatches {
        let query = Query::new(pattern, false, false).unwrap();
        let end = End {
            at: Instant::now() + Duration::from_mins(1),
            cancellation: CancellationToken::new(),
        };
        let max_bytes = 10_000;
        let display = Display {
            mode,
            context,
            max_matches,
            max_bytes,
        };
        matches_of(
            &FilePath::parse("a.txt").unwrap(),
            file.as_bytes(),
            &query,
            display,
            &end,
        )
    }

    fn lines(file: &str, context: usize) -> String {
        let text = shown(file, "x", Mode::Lines, context, 100).text;
        text.strip_prefix("a.txt\n").unwrap().replace('\n', "|")
    }

    #[test]
    fn matching_lines_have_colons_and_those_around_them_have_hyphens() {
        let file = "a\nx1\nb\nc\nd\nx2\nx3\ne";
        assert_eq!(lines(file, 0), "2: x1|6: x2|7: x3||");
        assert_eq!(lines(file, 1), "1- a|2: x1|3- b|--|5- d|6: x2|7: x3|8- e||");
        assert_eq!(lines(file, 2), "1- a|2: x1|3- b|4- c|5- d|6: x2|7: x3|8- e||");
        assert_eq!(lines(file, 10), "1- a|2: x1|3- b|4- c|5- d|6: x2|7: x3|8- e||");
        assert_eq!(lines("x", 3), "1: x||");
        assert_eq!(lines("\n\nx\r\n\n", 1), "2- |3: x|4- ||");
    }

    #[test]
    fn many_and_long_lines_are_cut() {
        let found = shown(&"x".repeat(5_000), "x", Mode::Lines, 0, 9);
        assert!(found.text.contains("[4500 more bytes]") && found.text.len() < 600);
        let far = format!("a\n{}needle{}\rb\n", "é".repeat(30_000), "y".repeat(1_000));
        let found = shown(&far, "needle", Mode::Lines, 1, 9).text;
        assert!(
            found.contains("2: [59750 bytes before] …éé") && found.contains("éneedley"),
            "{found}"
        );
        assert!(found.contains("yy… [758 more bytes]") && found.len() < 800, "{found}");
        assert_eq!(lines("a\rx\rb", 1), "1- a|2: x|3- b||");
        let found = shown(&"x\n".repeat(50_000), "x", Mode::Lines, 0, 100_000);
        assert!(found.is_cut && found.text.len() < 10_100, "{}", found.text.len());
    }
}
