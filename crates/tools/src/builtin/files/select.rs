//! Selects files of a directory by a pattern such as `src/**/*.rs`.

use globset::{GlobBuilder, GlobMatcher};

use super::ignored::Ignored;
use super::paths::{check_home, plain, unusable};
use crate::long_output::OUTPUT_DIRECTORY;
use agent::ports::ToolError;
use tasks::off_thread::by_size;
use workspace::{Entry, FilePath, Tree, TreeError, pattern_in_workspace};

/// The longest pattern, in characters.
pub(super) const MAX_PATTERN_LENGTH: usize = 256;
/// The most alternatives in braces. They multiply the paths that a pattern can match.
const MAX_ALTERNATIVES: usize = 64;
/// The work of one entry, as bytes that are compared.
const WORK_PER_ENTRY: u64 = 128;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    compared: Compared,
}

/// The part of a path that a pattern is compared with.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// The last name.
    Name,
    /// The path from the searched directory on.
    Relative,
    /// The path from the root of the workspace on.
    Whole,
}

impl Pattern {
    /// Reads a pattern as models write it.
    pub(super) async fn read(tree: &Tree, text: &str) -> Result<Self, ToolError> {
        check_home(text)?;
        Self::new(&plain(tree, text).await)
    }

    /// Compiles a pattern. A pattern without `/` matches names at any depth. An absolute one is
    /// compared with whole paths.
    fn new(text: &str) -> Result<Self, ToolError> {
        let invalid = |error: &dyn std::fmt::Display| {
            ToolError::new(format!(
                "the pattern {text:?} is invalid: {error}; write for example src/**/*.rs"
            ))
        };
        if text.matches([',', '{']).count() > MAX_ALTERNATIVES {
            return Err(invalid(&format_args!(
                "it has more than {MAX_ALTERNATIVES} alternatives"
            )));
        }
        let is_absolute = text.starts_with('/');
        let relative = if is_absolute {
            pattern_in_workspace(text).map_err(|error| unusable(text, error))?
        } else {
            text.trim_start_matches("./").to_owned()
        };
        let glob = GlobBuilder::new(&relative).literal_separator(true).build();
        let matcher = glob.map_err(|error| invalid(&error.kind()))?.compile_matcher();
        let compared = if is_absolute {
            Compared::Whole
        } else if relative.contains('/') || relative == "**" {
            Compared::Relative
        } else {
            Compared::Name
        };
        Ok(Self { matcher, compared })
    }

    /// Returns whether a path below the searched directory matches, which begins at the prefix.
    pub(super) fn matches(&self, path: &str, prefix: usize) -> bool {
        let relative = path.get(prefix..).unwrap_or_default();
        self.matcher.is_match(match self.compared {
            Compared::Name => relative.rsplit_once('/').map_or(relative, |(_, name)| name),
            Compared::Relative => relative,
            Compared::Whole => path,
        })
    }
}

/// The files below a directory.
#[derive(Debug, Default)]
pub(super) struct Selected {
    pub(super) entries: Vec<(FilePath, Entry)>,
    /// How many files more there would be without `.gitignore` files.
    pub(super) ignored: usize,
}

/// Returns the files and symlinks below a directory that match, by path. Leaves out ignored files,
/// unless they are asked for, and the stored outputs of tools if the directory is the whole
/// workspace.
pub(super) async fn selected(
    tree: &Tree,
    directory: Option<&FilePath>,
    pattern: Option<Pattern>,
    include_ignored: bool,
) -> Result<Selected, TreeError> {
    let prefix = directory.map_or(0, |directory| directory.as_str().len() + 1);
    let is_whole = directory.is_none();
    let is_selected = move |path: &FilePath, entry: &Entry| {
        let relative = path.as_str().get(prefix..).unwrap_or_default();
        let is_directory = matches!(entry, Entry::Directory { .. });
        let is_hidden = is_whole && relative.starts_with(OUTPUT_DIRECTORY);
        !is_directory
            && !is_hidden
            && pattern
                .as_ref()
                .is_none_or(|pattern| pattern.matches(path.as_str(), prefix))
    };
    let mut selected = everything_below(tree, directory, include_ignored, is_selected).await?;
    selected
        .entries
        .sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    Ok(selected)
}

/// Returns the entries below a directory, depth first by name, as far as a condition selects them.
/// Leaves out ignored files, unless they are asked for.
pub(super) async fn everything_below(
    tree: &Tree,
    directory: Option<&FilePath>,
    include_ignored: bool,
    is_selected: impl Fn(&FilePath, &Entry) -> bool + Send + 'static,
) -> Result<Selected, TreeError> {
    let below = tree.walk(directory).await?;
    let mut ignored = if include_ignored {
        Ignored::nothing()
    } else {
        Ignored::read(tree, directory, &below).await?
    };
    let select = move || {
        let mut selected = Selected::default();
        for (path, entry) in below {
            let is_directory = matches!(entry, Entry::Directory { .. });
            let is_ignored = ignored.has(&path, is_directory);
            if !is_selected(&path, &entry) {
                continue;
            }
            if !is_ignored {
                selected.entries.push((path, entry));
            } else if !is_directory {
                selected.ignored += 1;
            }
        }
        selected
    };
    let work = tree.totals().await?.entries().saturating_mul(WORK_PER_ENTRY);
    Ok(by_size(tree.tenant(), work, select).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths_or_names() {
        for (pattern, path, is_match) in [
            ("*.rs", "src/a/b.rs", true),
            ("*.rs", "src/a/b.rst", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/a/b/c.rs", true),
            ("./src/*", "src/a", true),
            ("/workspace/src/*", "src/a", true),
            ("/workspace/*", "src/a", false),
            ("/tmp/run-0123456789abcdef/workspace/**/a", "src/a", true),
            ("**", "a/b", true),
            ("*.{ts,tsx}", "a/b.tsx", true),
            ("[ab]?.txt", "x/b1.txt", true),
            ("**/test_*", "a/test_b/c", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).unwrap().matches(path, 0),
                is_match,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn invalid_and_hostile_patterns_are_refused() {
        let braces = "{a,b}".repeat(51);
        let nested = "{".repeat(65) + &"}".repeat(65);
        assert!(Pattern::new("/etc/*").is_err_and(|error| error.message.contains("outside")));
        assert!(Pattern::new("/workspace/src/*.rs").unwrap().matches("src/a.rs", 4));
        for pattern in ["[", "{a", "a}", "[z-a]", &braces, &nested] {
            let error = Pattern::new(pattern).map(|_| ()).expect_err(pattern);
            assert!(error.message.contains("is invalid"), "{}", error.message);
        }
        let stars = "*a".repeat(MAX_PATTERN_LENGTH / 2);
        assert!(!Pattern::new(&stars).unwrap().matches(&"a".repeat(255)[..100], 0));
    }
}
