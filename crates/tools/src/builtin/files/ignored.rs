//! The files that searches leave out: files that the `.gitignore` files of the workspace exclude,
//! and files in `.git`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;

use super::text::counted;
use crate::builtin::environment_tool::and_more;
use tasks::off_thread::by_size;
use values::json::Value;
use values::path_patterns::PathPatterns;
use workspace::{Entry, FilePath, Tree, TreeError};

const GIT_DIRECTORY: &str = ".git";
const PATTERNS_FILE: &str = ".gitignore";
/// The most files with patterns that are read, and their bytes. Files of the upper directories come
/// first, and the rest is ignored.
const MAX_FILES: usize = 100;
const MAX_BYTES: u64 = 64 << 10;
/// The time that paths are matched. Hostile patterns may take long for each of many paths.
const MAX_TIME: Duration = Duration::from_secs(5);
/// The most ephemeral files and directories that a result names.
const MAX_NAMED: usize = 10;
/// How much slower it is to compile patterns than to read them.
const SLOWNESS: u64 = 64;

/// The files to leave out. Asked for each path below a directory, each directory before its
/// entries.
#[derive(Debug)]
pub(super) struct Ignored {
    /// The patterns of each directory that has some, with the path of the directory. Patterns of
    /// the lower directories come first.
    patterns: Vec<(String, PathPatterns)>,
    leaves_git: bool,
    /// The ignored directories so far. Their entries are ignored, too.
    directories: BTreeSet<String>,
    /// When the first path was asked for.
    begun: Option<Instant>,
}

impl Ignored {
    /// Ignores nothing.
    pub(super) fn nothing() -> Self {
        Self {
            patterns: Vec::new(),
            leaves_git: true,
            directories: BTreeSet::new(),
            begun: None,
        }
    }

    /// Reads the patterns that concern the entries of a directory.
    pub(super) async fn read(
        tree: &Tree,
        directory: Option<&FilePath>,
        entries: &[(FilePath, Entry)],
    ) -> Result<Self, TreeError> {
        let mut files = Vec::new();
        let mut above = directory.and_then(FilePath::parent);
        // The patterns of the directories above the searched one, up to the root.
        let mut directories: Vec<Option<FilePath>> = directory.map(|_| None).into_iter().collect();
        while let Some(path) = above {
            above = path.parent();
            directories.push(Some(path));
        }
        for directory in directories {
            let prefix = directory.map_or_else(String::new, |path| format!("{path}/"));
            let path = FilePath::parse(&format!("{prefix}{PATTERNS_FILE}"))?;
            files.extend(tree.entry(&path).await?.map(|entry| (prefix, entry)));
        }
        let below = entries.iter().filter(|(path, _)| path.name() == PATTERNS_FILE);
        files.extend(below.map(|(path, entry)| {
            let prefix = path.as_str().strip_suffix(PATTERNS_FILE).unwrap_or_default();
            (prefix.to_owned(), entry.clone())
        }));
        files.sort_by_key(|(prefix, _)| prefix.matches('/').count());
        let mut bytes = 0;
        files.retain(|(_, entry)| {
            let Entry::File { size, .. } = entry else { return false };
            bytes += size;
            bytes <= MAX_BYTES
        });
        files.truncate(MAX_FILES);
        let (prefixes, entries): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let texts = tree.read_entries(&entries).await?;
        let compile = move || {
            let patterns = texts
                .iter()
                .map(|text| PathPatterns::of_file(&String::from_utf8_lossy(text)));
            prefixes.into_iter().zip(patterns).rev().collect()
        };
        Ok(Self {
            patterns: by_size(tree.tenant(), bytes.saturating_mul(SLOWNESS), compile).await,
            leaves_git: false,
            directories: BTreeSet::new(),
            begun: None,
        })
    }

    /// Returns whether a path is ignored. Once matching has taken too long, none is.
    pub(super) fn has(&mut self, path: &FilePath, is_directory: bool) -> bool {
        if self.begun.get_or_insert_with(Instant::now).elapsed() > MAX_TIME {
            return false;
        }
        let is_below = path
            .parent()
            .is_some_and(|above| self.directories.contains(above.as_str()));
        let is_ignored = is_below || self.matches(path, is_directory);
        if is_ignored && is_directory {
            self.directories.insert(path.as_str().to_owned());
        }
        is_ignored
    }

    fn matches(&self, path: &FilePath, is_directory: bool) -> bool {
        if is_directory && path.name() == GIT_DIRECTORY {
            return !self.leaves_git;
        }
        let matched = self.patterns.iter().find_map(|(prefix, patterns)| {
            let relative = path.as_str().strip_prefix(prefix.as_str())?;
            patterns.matches(relative, is_directory)
        });
        matched.unwrap_or(false)
    }
}

/// Returns whether a file is read for its patterns. A listing reads no other one.
pub(super) fn is_patterns_file(path: &FilePath, size: u64) -> bool {
    path.name() == PATTERNS_FILE && size <= MAX_BYTES
}

/// Returns the schema of the argument `include_ignored`.
pub(super) fn include_ignored_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "Whether to include files that .gitignore files exclude, and what is in .git.",
    })
}

/// Adds to a result how many files were left out, and which ephemeral ones.
pub(super) fn with_left_out(mut result: String, ignored: usize, ephemeral: &[String]) -> String {
    // Writing to a string does not fail.
    if ignored > 0 {
        let files = counted(ignored, "ignored file");
        let _ = write!(result, "\n[{files} left out: include_ignored includes them]");
    }
    if !ephemeral.is_empty() {
        let named: Vec<_> = ephemeral.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = and_more(ephemeral.len() - named.len());
        let named = named.join(", ");
        let _ = write!(
            result,
            "\n[left out, since it is ephemeral: {named}{more}; name it as path to see what is in it]"
        );
    }
    result
}
