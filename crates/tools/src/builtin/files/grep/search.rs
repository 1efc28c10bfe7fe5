//! Searches one file for the lines that match. The pattern and the file are hostile, so the size of
//! the compiled pattern, the length of a line and the time are bounded.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use regex::bytes::{Regex, RegexBuilder};
use tokio_util::sync::CancellationToken;

use crate::builtin::files::line_ends::terminator;
use crate::builtin::files::text::without_end;

/// The longest pattern, in characters.
pub(super) const MAX_PATTERN_LENGTH: usize = 1_000;
/// The size of a compiled pattern. A byte of the file costs at worst as many steps as the pattern
/// has states, which is some thousands.
const MAX_COMPILED_BYTES: usize = 256 << 10;
/// The memory of the faster form of a pattern, which is made during a search.
const MAX_CACHE_BYTES: usize = 1 << 20;
/// The bytes that are searched at a time. The time is checked after each.
const CHUNK_BYTES: usize = 32 << 10;

/// By how much the beginnings of a long line grow from which its time is estimated.
const PROBE_GROWTH: usize = 8;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Query {
    regex: Regex,
    /// Whether several lines can be searched at once: a match in one line alone is also a match in
    /// all of them together.
    takes_many_lines: bool,
}

/// When a search must end.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) at: Instant,
    pub(super) cancellation: CancellationToken,
}

/// The search ended before the file did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutOfTime;

impl Query {
    /// Compiles a pattern. The error is for the model.
    pub(super) fn new(pattern: &str, is_literal: bool, ignores_case: bool) -> Result<Self, String> {
        let pattern = if is_literal {
            regex::escape(pattern)
        } else {
            pattern.to_owned()
        };
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(ignores_case)
            .multi_line(true)
            .crlf(true)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_CACHE_BYTES)
            .build();
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "the pattern is too large; use smaller numbers of repetitions, or fewer of them".to_owned()
            }
            error => format!("the pattern is invalid: {error}"),
        })?;
        Ok(Self {
            regex,
            takes_many_lines: takes_many_lines(&pattern),
        })
    }

    /// Returns where the first match in a line begins.
    pub(super) fn position(&self, line: &[u8]) -> Option<usize> {
        self.regex.find(line).map(|found| found.start())
    }

    /// Returns whether a line matches. A search can't be stopped inside a line. So the time for a
    /// long one is estimated from its beginning, and from longer and longer ones.
    fn matches(&self, line: &[u8], end: &End) -> Result<bool, OutOfTime> {
        let mut length = CHUNK_BYTES;
        while length < line.len() {
            let begin = Instant::now();
            // A match may depend on where the text ends, so it is no answer yet.
            self.regex.is_match(&line[..length]);
            let times = u32::try_from(line.len() / length).unwrap_or(u32::MAX);
            let left = end.at.saturating_duration_since(Instant::now());
            if end.cancellation.is_cancelled() || begin.elapsed().saturating_mul(times) >= left {
                return Err(OutOfTime);
            }
            length = length.saturating_mul(PROBE_GROWTH);
        }
        Ok(self.regex.is_match(line))
    }
}

/// Returns whether `^` and `$` mean lines everywhere in a pattern, and nothing else depends on
/// where the text begins and ends.
fn takes_many_lines(pattern: &str) -> bool {
    let has_flag = |flags: &str| {
        let mut flags = flags.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-');
        flags.any(|flag| matches!(flag, 'm' | 'R'))
    };
    !pattern.contains("\\A") && !pattern.contains("\\z") && !pattern.split("(?").skip(1).any(has_flag)
}

/// Calls `found` with the range and the number of each line that matches, until it breaks.
pub(super) fn search(
    file: &[u8],
    query: &Query,
    end: &End,
    mut found: impl FnMut(Range<usize>, usize) -> ControlFlow<()>,
) -> Result<(), OutOfTime> {
    let terminator = terminator(file);
    let (mut begin, mut number) = (0, 1);
    while begin < file.len() {
        if end.cancellation.is_cancelled() || Instant::now() >= end.at {
            return Err(OutOfTime);
        }
        let chunk = begin..chunk_end(file, begin, terminator);
        begin = chunk.end;
        let is_long = chunk.len() > CHUNK_BYTES;
        if query.takes_many_lines && !is_long && !query.regex.is_match(&file[chunk.clone()]) {
            number += memchr::memchr_iter(terminator, &file[chunk]).count();
            continue;
        }
        let mut start = chunk.start;
        for line in file[chunk].split_inclusive(|byte| *byte == terminator) {
            let text = without_end(line);
            if query.matches(text, end)? && found(start..start + text.len(), number).is_break() {
                return Ok(());
            }
            start += line.len();
            number += 1;
        }
    }
    Ok(())
}

/// Returns the end of the lines that begin at an offset and fit into a chunk; at least one line.
fn chunk_end(file: &[u8], begin: usize, terminator: u8) -> usize {
    let limit = begin + CHUNK_BYTES;
    if file.len() <= limit {
        return file.len();
    }
    match memchr::memrchr(terminator, &file[begin..limit]) {
        Some(end) => begin + end + 1,
        None => memchr::memchr(terminator, &file[limit..]).map_or(file.len(), |end| limit + end + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn numbers(file: &[u8], query: &Query) -> Vec<usize> {
        let mut numbers = Vec::new();
        let end = End {
            at: Instant::now() + Duration::from_mins(1),
            cancellation: CancellationToken::new(),
        };
        let found = |range: Range<usize>, number| {
            assert!(!file[range].contains(&b'\n'));
            numbers.push(number);
            ControlFlow::Continue(())
        };
        search(file, query, &end, found).unwrap();
        numbers
    }

    fn query(pattern: &str) -> Query {
        Query::new(pattern, false, false).unwrap()
    }

    #[test]
    fn lines_are_matched_alone() {
        let file = b"one\r\ntwo\n\nthree";
        for (pattern, expected) in [
            ("t", &[2, 4][..]),
            ("e$", &[1, 4]),
            ("^$", &[3]),
            ("one\\s+two", &[]),
            ("\\Atwo\\z", &[2]),
            ("(?-m)^two$", &[2]),
            ("[^x]", &[1, 2, 4]),
            ("", &[1, 2, 3, 4]),
        ] {
            assert_eq!(numbers(file, &query(pattern)), expected, "{pattern}");
        }
        assert_eq!(numbers(file, &Query::new("TWO", true, true).unwrap()), [2]);
        assert_eq!(numbers(b"a.b\naxb\n", &Query::new("a.b", true, false).unwrap()), [1]);
        assert_eq!(numbers(b"\xff\xfe\nx\xffy\n", &query("x.*|x")), [2], "invalid UTF-8");
        assert_eq!(numbers(b"", &query("")), [0usize; 0]);
    }

    #[test]
    fn lines_across_chunks_have_the_right_numbers() {
        let lines: Vec<_> = (1..=20_000).map(|number| format!("line {number}\n")).collect();
        let file = lines.concat();
        assert_eq!(numbers(file.as_bytes(), &query("9999$")), [9_999, 19_999]);
        assert_eq!(numbers(file.as_bytes(), &query("\\A")).len(), 20_000);
        let long = [vec![b'x'; 1 << 20], b"needle\nneedle\n".to_vec()].concat();
        for (pattern, expected) in [
            ("needle", &[1, 2][..]),
            ("^x+needle$", &[1]),
            ("x$", &[]),
            ("^needle", &[2]),
        ] {
            assert_eq!(numbers(&long, &query(pattern)), expected, "{pattern}");
        }
        let cr = long.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte });
        assert_eq!(numbers(&cr.collect::<Vec<_>>(), &query("^needle$")), [2]);
    }

    #[test]
    fn hostile_patterns_are_refused_or_end_in_time() {
        for pattern in [
            "a{1000}{1000}",
            "\\pL{1000}",
            "((a{100}){100}){100}",
            "(",
            "[z-a]",
            "a**{9999999999}",
        ] {
            let error = Query::new(pattern, false, false).unwrap_err();
            assert!(error.starts_with("the pattern is"), "{error}");
        }
        let nested = "(".repeat(500) + &")".repeat(500);
        assert!(Query::new(&nested, false, false).is_err());
        // These are exponential where a search goes back.
        let file = [b"a".repeat(30_000), b"!\n".to_vec()].concat();
        for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){20}$", "(x+x+)+y"] {
            assert_eq!(numbers(&file, &query(pattern)), [0usize; 0], "{pattern}");
        }
    }

    #[test]
    fn a_line_that_would_take_too_long_is_not_searched() {
        let end = End {
            at: Instant::now() + Duration::from_millis(20),
            cancellation: CancellationToken::new(),
        };
        let line = vec![b'x'; 64 << 20];
        assert_eq!(query("(.*y){30}z").matches(&line, &end), Err(OutOfTime));
    }

    #[test]
    fn a_search_ends_when_its_time_is_over_or_its_run_is_cancelled() {
        let begin = Instant::now();
        let cancellation = CancellationToken::new();
        let never = |_, _| ControlFlow::Continue(());
        let end = End {
            at: begin,
            cancellation: cancellation.clone(),
        };
        assert_eq!(search(b"a", &query("a"), &end, never), Err(OutOfTime));
        cancellation.cancel();
        let at = begin + Duration::from_mins(1);
        assert_eq!(
            search(b"a", &query("a"), &End { at, cancellation }, never),
            Err(OutOfTime)
        );
    }

    proptest! {
        #[test]
        fn many_lines_at_once_find_the_same_as_each_line_alone(
            file in "[ab\r\n]{0,30}",
            pattern in prop::sample::select(vec![
                "a", "^a", "a$", "^$", "\\ba", "b\\b", "a\\B", "[^a]", "a\\s*b", "(?i)A|^b", "^\\s*$", "ab*?$",
            ]),
        ) {
            let query = query(pattern);
            let alone = Query { takes_many_lines: false, ..query.clone() };
            prop_assert!(query.takes_many_lines);
            prop_assert_eq!(numbers(file.as_bytes(), &query), numbers(file.as_bytes(), &alone));
        }
    }
}
