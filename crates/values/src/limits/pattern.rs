//! Patterns of names: `*` matches any text, including none.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 200;

/// A pattern that names match or not, such as `openai/*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a pattern has 1 to {MAX_LENGTH} visible characters; `*` stands for any text, as in `openai/*`")]
pub struct ParsePatternError;

impl Pattern {
    /// Checks that the pattern can match a model, named `PROVIDER/MODEL`. The error says what to
    /// write instead.
    pub fn check_for_models(&self) -> Result<(), String> {
        if self.0.contains(['/', '*']) {
            return Ok(());
        }
        Err(format!(
            "{:?} matches no model, since models are named PROVIDER/MODEL: write `{}/*`, or allow the provider by `providers`",
            self.0, self.0
        ))
    }

    /// Returns whether the whole name matches.
    pub fn matches(&self, name: &str) -> bool {
        Self::text_matches(&self.0, name)
    }

    /// Returns whether the whole text matches a pattern, which may have spaces.
    pub fn text_matches(pattern: &str, text: &str) -> bool {
        let Some((start, rest)) = pattern.split_once('*') else {
            return pattern == text;
        };
        let Some(mut name) = text.strip_prefix(start) else {
            return false;
        };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        // The earliest match of each part leaves the most text for the parts after it.
        for part in middle.split('*') {
            match name.find(part) {
                Some(at) => name = &name[at + part.len()..],
                None => return false,
            }
        }
        name.ends_with(end)
    }
}

impl FromStr for Pattern {
    type Err = ParsePatternError;

    fn from_str(text: &str) -> Result<Self, ParsePatternError> {
        let is_visible = |c: char| !c.is_control() && !c.is_whitespace();
        if (1..=MAX_LENGTH).contains(&text.len()) && text.chars().all(is_visible) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParsePatternError)
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = ParsePatternError;

    fn try_from(text: String) -> Result<Self, ParsePatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("openai/*", "openai/gpt-5", true),
            ("openai/*", "openai/", true),
            ("openai/*", "openai_responses/gpt-5", false),
            ("*", "", true),
            ("*mini*", "openai/gpt-5-mini-2026", true),
            ("*-mini", "openai/gpt-5-mini-2026", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a**c", "ac", true),
            ("ab*ba", "aba", false),
            ("demo", "demo", true),
            ("demo", "demo2", false),
            ("d.mo", "demo", false),
            ("*\u{e9}*", "caf\u{e9}s", true),
        ] {
            let matcher: Pattern = pattern.parse().unwrap();
            assert_eq!(matcher.matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn blanks_and_long_texts_are_no_patterns() {
        for bad in ["", "a b", "a\0", &"x".repeat(201)] {
            assert_eq!(bad.parse::<Pattern>(), Err(ParsePatternError));
        }
    }

    #[test]
    fn many_stars_take_little_time() {
        let pattern: Pattern = "*a".repeat(100).parse().unwrap();
        assert!(!pattern.matches(&"ab".repeat(1_000_000)));
    }
}
