//! Patterns of paths, in the syntax of
//! [`.gitignore` files](https://git-scm.com/docs/gitignore#_pattern_format).

use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::Deserialize;

/// The most lines of a file that count, and the longest one in bytes.
const MAX_LINES: usize = 1_000;
const MAX_LINE_BYTES: usize = 1_024;

/// A list of patterns. A later pattern prevails over an earlier one.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct PathPatterns {
    texts: Arc<[String]>,
    matcher: Arc<Gitignore>,
}

/// A pattern that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a pattern of a .gitignore file: {reason}")]
pub struct InvalidPattern {
    pattern: String,
    reason: String,
}

impl TryFrom<Vec<String>> for PathPatterns {
    type Error = InvalidPattern;

    fn try_from(patterns: Vec<String>) -> Result<Self, InvalidPattern> {
        Self::new(patterns)
    }
}

impl PathPatterns {
    /// Compiles patterns.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, InvalidPattern> {
        let texts: Vec<String> = patterns.into_iter().map(Into::into).collect();
        let invalid = |pattern: String, error: ignore::Error| InvalidPattern {
            pattern,
            reason: error.to_string(),
        };
        let mut builder = GitignoreBuilder::new("");
        for text in &texts {
            builder
                .add_line(None, text)
                .map_err(|error| invalid(text.clone(), error))?;
        }
        let matcher = builder.build().map_err(|error| invalid(texts.join(" "), error))?;
        Ok(Self {
            texts: texts.into(),
            matcher: Arc::new(matcher),
        })
    }

    /// Reads a `.gitignore` file. Leaves out the lines that are no patterns, long lines, and the
    /// rest of a long file.
    pub fn of_file(text: &str) -> Self {
        let mut builder = GitignoreBuilder::new("");
        let lines = text.lines().take(MAX_LINES).filter(|line| line.len() <= MAX_LINE_BYTES);
        let texts: Vec<_> = lines
            .filter(|line| builder.add_line(None, line).is_ok())
            .map(str::to_owned)
            .collect();
        // All of them together may be too large.
        let matcher = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self {
            texts: texts.into(),
            matcher: Arc::new(matcher),
        }
    }

    /// Returns the patterns as they were written.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns whether a path matches; `None` if no pattern concerns it. A pattern that begins with
    /// `!` excludes paths. Directories above the path are not tried.
    pub fn matches(&self, path: &str, is_directory: bool) -> Option<bool> {
        match self.matcher.matched(path, is_directory) {
            ignore::Match::None => None,
            ignore::Match::Ignore(_) => Some(true),
            ignore::Match::Whitelist(_) => Some(false),
        }
    }
}

impl Default for PathPatterns {
    fn default() -> Self {
        Self {
            texts: Arc::default(),
            matcher: Arc::new(Gitignore::empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_concerns_a_path_prevails() {
        let patterns = PathPatterns::new(["target/", "*.log", "!keep.log", "/build", "docs/*.tmp"]).unwrap();
        for (path, is_directory, expected) in [
            ("target", true, Some(true)),
            ("a/target", true, Some(true)),
            ("target", false, None),
            ("target/debug", true, None),
            ("a/b.log", false, Some(true)),
            ("a/keep.log", false, Some(false)),
            ("build", false, Some(true)),
            ("a/build", true, None),
            ("docs/x.tmp", false, Some(true)),
            ("docs/a/x.tmp", false, None),
        ] {
            assert_eq!(patterns.matches(path, is_directory), expected, "{path}");
        }
        assert_eq!(PathPatterns::default().matches("a", true), None);
    }

    #[test]
    fn a_file_may_have_any_lines() {
        let patterns = PathPatterns::of_file("# comment\n\n[\n*.a\r\n{b\n\\!c\n");
        assert_eq!(patterns.matches("x.a", false), Some(true));
        assert_eq!(patterns.matches("!c", false), Some(true));
        assert_eq!(patterns.matches("# comment", false), None);
        let many = format!("{}last", "x\n".repeat(MAX_LINES));
        assert_eq!(PathPatterns::of_file(&many).matches("last", false), None);
    }

    #[test]
    fn hostile_lines_are_bounded() {
        let wide = ["{a,b}", "**/", "*a", "[a-z]"].map(|part| part.repeat(MAX_LINE_BYTES / part.len()));
        let file = wide.iter().cycle().take(MAX_LINES / 10).map(String::as_str);
        let patterns = PathPatterns::of_file(&file.collect::<Vec<_>>().join("\n"));
        patterns.matches(&"a".repeat(255), false);
        let long = format!("{}\nshort", "x".repeat(MAX_LINE_BYTES + 1));
        let patterns = PathPatterns::of_file(&long);
        assert_eq!(patterns.texts(), ["short"]);
        assert!(
            PathPatterns::new(["a", "[z-a]"])
                .unwrap_err()
                .to_string()
                .starts_with("\"[z-a]\" is not")
        );
    }
}
