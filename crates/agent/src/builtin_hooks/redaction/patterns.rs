//! Compiles patterns, and redacts their matches in a text.
//!
//! One search takes linear time. All searches of a text together take up to quadratic time, since
//! each match may search to the end of the text.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use crate::hooks::{ensure, read_config};
use values::json::Object;

/// The most patterns.
const MAX_PATTERNS: usize = 50;
/// The longest pattern, replacement and name, in bytes.
const MAX_LENGTH: usize = 1_000;
/// The most memory of all compiled patterns of a hook, in bytes.
const MAX_COMPILED: usize = 2 << 20;
/// The smallest size limit that is tried for compiled patterns, in bytes.
const MIN_COMPILED: usize = 1 << 10;
/// The most work of a search: the bytes of the text times the bytes of the compiled patterns. It
/// takes 5 to 10 seconds if most patterns are active at each byte of the text. Ordinary patterns
/// take a thousandth of that.
pub(super) const MAX_SEARCH: usize = 1 << 37;
/// The most bytes that the caches of the searches for single patterns take, in each direction: one
/// direction finds the end of a match, the other its beginning.
const MAX_CACHED: usize = 4 << 20;
/// Matches that a removal uncovers are also removed. A text that still matches after so many rounds
/// is replaced as a whole.
const MAX_ROUNDS: usize = 4;

/// Texts that reveal patterns with empty matches, such as `x*` or `\b`.
const PROBES: [&str; 2] = ["", "a -"];

/// The configuration of `redaction`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RedactionConfig {
    patterns: Vec<PatternConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternConfig {
    /// The name of the matches, such as `api_key`.
    name: String,
    /// The pattern, in the syntax of the crate `regex`.
    regex: String,
    /// The literal replacement of a match; by default `[redacted:NAME]`.
    #[serde(default)]
    replacement: Option<String>,
}

/// Compiled patterns, in the order in which they are applied.
#[derive(Debug)]
pub(super) struct Patterns {
    /// All patterns, for one search.
    all: RegexSet,
    each: Vec<Pattern>,
    /// The longest text that is searched, in bytes.
    longest: usize,
}

#[derive(Debug)]
struct Pattern {
    regex: Regex,
    replacement: String,
}

impl Patterns {
    /// Compiles the patterns of a configuration.
    pub(super) fn of(RedactionConfig { patterns }: &RedactionConfig) -> Result<Self, String> {
        let all = |size: usize| {
            RegexSetBuilder::new(patterns.iter().map(|pattern| &pattern.regex))
                .size_limit(size)
                .build()
        };
        let each = || {
            patterns
                .iter()
                .map(|pattern| pattern.compiled(MAX_CACHED / patterns.len()))
        };
        // The size of the patterns is the smallest power of two that fits them. They are compiled
        // together before each alone, so that none is retained if all take too much. The error
        // names the first invalid pattern.
        let sizes = std::iter::successors(Some(MIN_COMPILED), |size| Some(2 * size));
        let mut sizes = sizes.take_while(|size| *size <= MAX_COMPILED);
        let Some((size, all)) = sizes.find_map(|size| Some((size, all(size).ok()?))) else {
            each().try_for_each(|pattern| pattern.map(drop))?;
            let mib = MAX_COMPILED >> 20;
            return Err(format!(
                "the patterns together are too large: compiled, they take more than {mib} MiB"
            ));
        };
        let each = each().collect::<Result<Vec<_>, _>>()?;
        for (pattern, config) in each.iter().zip(patterns) {
            let name = &config.name;
            let finds_nothing = !all.is_match(&pattern.replacement);
            let message = format!("the replacement of the pattern {name:?} is itself found by a pattern");
            ensure(finds_nothing, message)?;
        }
        let longest = MAX_SEARCH / size;
        Ok(Self { all, each, longest })
    }

    /// Returns whether a text has a match. A text that is too long to search counts as a match.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        text.len() > self.longest || self.all.is_match(text)
    }

    /// Redacts matches in a text; the result has at most `most` bytes.
    ///
    /// The replacement stands for the whole text in four cases: the result or the text is too long,
    /// the time is over, or each removal uncovers a new match. If the replacement is also too long,
    /// the result is empty.
    pub(super) fn replaced_in(&self, text: &str, most: usize, is_over: &dyn Fn() -> bool) -> String {
        let most = most.min(self.longest);
        let mut redacted = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            for pattern in &self.each {
                let Some(replaced) = pattern.replaced_in(&redacted, most, is_over) else {
                    return pattern.whole(most);
                };
                redacted = Cow::Owned(replaced);
            }
            if !self.finds_in(&redacted) {
                return redacted.into_owned();
            }
        }
        let persistent = self.all.matches(&redacted).into_iter().next();
        let persistent = persistent.and_then(|at| self.each.get(at));
        persistent.map_or(String::new(), |pattern| pattern.whole(most))
    }
}

impl RedactionConfig {
    /// Parses and checks a configuration without compiling its patterns.
    pub(super) fn read(config: &Object) -> Result<Self, String> {
        let config: Self = read_config(config)?;
        ensure(
            (1..=MAX_PATTERNS).contains(&config.patterns.len()),
            format!("patterns has 1 to {MAX_PATTERNS} entries"),
        )?;
        config.patterns.iter().try_for_each(PatternConfig::check)?;
        Ok(config)
    }
}

impl PatternConfig {
    fn check(&self) -> Result<(), String> {
        let Self {
            name,
            regex,
            replacement,
        } = self;
        ensure(!name.is_empty(), "a pattern has no name")?;
        let texts = [Some(name), Some(regex), replacement.as_ref()];
        ensure(
            texts.into_iter().flatten().all(|text| text.len() <= MAX_LENGTH),
            format!("a text of the pattern {name:?} is longer than {MAX_LENGTH} bytes"),
        )?;
        // JSON would show each as six bytes.
        let shown = [Some(name), replacement.as_ref()];
        ensure(
            !shown.into_iter().flatten().any(|text| text.contains(char::is_control)),
            format!("the name or the replacement of the pattern {name:?} has a control character"),
        )
    }

    fn compiled(&self, cached: usize) -> Result<Pattern, String> {
        let name = &self.name;
        let built = RegexBuilder::new(&self.regex)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(cached)
            .build();
        let regex = built.map_err(|error| format!("the pattern {name:?} can't be used: {error}"))?;
        // An empty match hides a longer one at the same position.
        let is_empty_at = |text: &str| regex.find_iter(text).any(|found| found.is_empty());
        let finds_words = !PROBES.into_iter().any(is_empty_at);
        ensure(finds_words, format!("the pattern {name:?} finds the empty text"))?;
        let replacement = self.replacement.clone();
        let replacement = replacement.unwrap_or_else(|| format!("[redacted:{name}]"));
        Ok(Pattern { regex, replacement })
    }
}

impl Pattern {
    /// Replaces each match in a text. Returns `None` if the text or the result has more than `most`
    /// bytes, or if the time is over.
    fn replaced_in(&self, text: &str, most: usize, is_over: &dyn Fn() -> bool) -> Option<String> {
        if text.len() > most {
            return None;
        }
        let (mut redacted, mut after) = (String::with_capacity(text.len()), 0);
        let mut matches = self.regex.find_iter(text);
        while !is_over() {
            let Some(found) = matches.next() else {
                redacted.push_str(&text[after..]);
                return (redacted.len() <= most).then_some(redacted);
            };
            redacted.push_str(&text[after..found.start()]);
            redacted.push_str(&self.replacement);
            after = found.end();
            if redacted.len() > most {
                return None;
            }
        }
        None
    }

    /// Returns the replacement for a whole text; empty if it is longer than `most` bytes.
    fn whole(&self, most: usize) -> String {
        if self.replacement.len() <= most {
            self.replacement.clone()
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::redactor::Redactor;
    use super::*;

    fn patterns(config: Value) -> Result<Patterns, String> {
        let Value::Object(config) = config else {
            panic!("no object")
        };
        Patterns::of(&RedactionConfig::read(&config)?)
    }

    fn one(regex: &str, replacement: &str) -> Result<Patterns, String> {
        patterns(json!({"patterns": [{"name": "p", "regex": regex, "replacement": replacement}]}))
    }

    #[test]
    fn every_match_is_removed_and_what_that_uncovers() {
        for (regex, replacement, text, redacted) in [
            (r"sk-\w+", "[key]", "a sk-1, sk-2.", "a [key], [key]."),
            (r"sk-\w+", "$0", "sk-1", "$0"),
            ("ab", "", "aaabbb", ""),
            (r"\bx\b", "[y]", "x xx x", "[y] xx [y]"),
            ("é+", "e", "caféé ☕", "cafe ☕"),
            ("none", "[y]", "nothing here", "nothing here"),
            // Each round uncovers another match, so the whole text is replaced.
            ("ab", "", "aaaaaaabbbbbbb", ""),
        ] {
            let patterns = one(regex, replacement).unwrap();
            let found = Redactor::new(&patterns, &|| false).text(text);
            assert_eq!(
                found.as_deref(),
                (redacted != text).then_some(redacted),
                "{regex} in {text}"
            );
        }
        let named = patterns(json!({"patterns": [{"name": "card", "regex": r"\d{4}"}]})).unwrap();
        let redacted = Redactor::new(&named, &|| false).text("4111 x");
        assert_eq!(redacted.as_deref(), Some("[redacted:card] x"));
    }

    #[test]
    fn patterns_that_can_not_work_are_named() {
        let long = "x".repeat(1_001);
        for (config, fault) in [
            (json!({}), "missing field `patterns`"),
            (json!({"patterns": []}), "patterns has 1 to 50 entries"),
            (
                json!({"patterns": [{"name": "a", "regex": "a", "flags": "i"}]}),
                "patterns[0].flags: unknown field `flags`",
            ),
            (
                json!({"patterns": [{"name": "a"}]}),
                "patterns[0]: missing field `regex`",
            ),
            (
                json!({"patterns": [{"name": "", "regex": "a"}]}),
                "a pattern has no name",
            ),
            (
                json!({"patterns": [{"name": "a", "regex": "("}]}),
                r#"the pattern "a" can't be used: regex parse error"#,
            ),
            (
                json!({"patterns": [{"name": "a", "regex": r"(\w{100}){100}"}]}),
                r#"the pattern "a" can't be used: Compiled regex exceeds size limit"#,
            ),
            (
                json!({"patterns": vec![json!({"name": "a", "regex": r"\w{10}"}); 5]}),
                "the patterns together are too large: compiled, they take more than 2 MiB",
            ),
            (
                json!({"patterns": [{"name": "a", "regex": r"\b|x"}]}),
                r#"the pattern "a" finds the empty text"#,
            ),
            (
                json!({"patterns": [{"name": "a", "regex": "x*"}]}),
                r#"the pattern "a" finds the empty text"#,
            ),
            (
                json!({"patterns": [{"name": "a", "regex": "a"}, {"name": "b", "regex": "redacted"}]}),
                r#"the replacement of the pattern "a" is itself found by a pattern"#,
            ),
            (
                json!({"patterns": [{"name": "a", "regex": long}]}),
                r#"a text of the pattern "a" is longer than 1000 bytes"#,
            ),
            (
                json!({"patterns": [{"name": "a", "regex": "b", "replacement": "\u{1}"}]}),
                r#"the name or the replacement of the pattern "a" has a control character"#,
            ),
        ] {
            let message = patterns(config.clone()).unwrap_err();
            assert!(message.starts_with(fault), "{config}: {message}");
        }
    }
}
