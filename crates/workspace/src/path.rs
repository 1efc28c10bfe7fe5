//! Paths in a workspace. Parsing them is the only way to make one, so no path leaves its tree.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command_paths::names_in_workspace;
use super::limits::{MAX_LEVELS, MAX_NAME_BYTES, MAX_PATH_BYTES};
use super::path_error::PathError;

/// The path of a file, symlink or directory below the root of a workspace.
///
/// It is relative, with `/` between names. It is never empty. A name is never empty, `.` or `..`,
/// and has no control characters. A path has at most 1,024 bytes and 64 levels, a name at most 255
/// bytes. Paths are ordered by their bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(Arc<str>);

impl FilePath {
    /// Parses a path as programs write it, such as `src/main.rs`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        for (level, name) in text.split('/').enumerate() {
            if level == MAX_LEVELS {
                return Err(PathError::TooDeep);
            }
            check_name(name)?;
        }
        Ok(Self(Arc::from(text)))
    }

    /// Parses a path as people and models write it: relative to the root, or absolute as commands
    /// see it.
    ///
    /// Accepts `.` and `..` and several `/` in a row, and resolves them without regard to symlinks.
    /// Returns `None` for the root itself.
    pub fn resolve(text: &str) -> Result<Option<Self>, PathError> {
        // Bounds the work. A sensible path is much shorter.
        if text.len() > 4 * MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        Self::from_names(&names_in_workspace(text)?)
    }

    /// Joins names; `None` if there are none.
    pub(super) fn from_names(names: &[impl AsRef<str>]) -> Result<Option<Self>, PathError> {
        if names.is_empty() {
            return Ok(None);
        }
        let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
        Self::parse(&names.join("/")).map(Some)
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Returns the directory that contains the last name; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(Arc::from(parent)))
    }

    /// Returns the path of a name in this directory.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        check_name(name)?;
        if self.0.len() + 1 + name.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if self.names().count() == MAX_LEVELS {
            return Err(PathError::TooDeep);
        }
        Ok(Self(Arc::from(format!("{self}/{name}"))))
    }

    /// Returns the path of a name in a directory, or in the root.
    pub(super) fn below(directory: Option<&Self>, name: &str) -> Result<Self, PathError> {
        match directory {
            Some(directory) => directory.join(name),
            None => Self::parse(name),
        }
    }

    /// Iterates over the names, from the root on.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns whether the path is inside the directory at any depth. It is not below itself.
    pub fn is_below(&self, directory: &Self) -> bool {
        let rest = self.0.strip_prefix(&*directory.0);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// Checks a single name.
pub(super) fn check_name(name: &str) -> Result<(), PathError> {
    match name {
        "" => Err(PathError::Empty),
        "." | ".." => Err(PathError::Relative),
        _ if name.len() > MAX_NAME_BYTES => Err(PathError::NameTooLong),
        _ if name.chars().any(|c| c == '/' || c.is_control()) => Err(PathError::Character),
        _ => Ok(()),
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePath({:?})", self.as_str())
    }
}

impl FromStr for FilePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for FilePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn a_strict_path_is_parsed_as_it_is_written() {
        for good in ["a", "src/main.rs", "..a/b..", "with space/ü", &"x".repeat(255)] {
            assert_eq!(path(good).as_str(), good);
        }
        let bad = [
            ("", PathError::Empty),
            ("/a", PathError::Empty),
            ("a/", PathError::Empty),
            ("a//b", PathError::Empty),
            (".", PathError::Relative),
            ("a/../b", PathError::Relative),
            ("a\0b", PathError::Character),
            ("a\nb", PathError::Character),
            ("a\u{85}b", PathError::Character),
            (&"x".repeat(256), PathError::NameTooLong),
            (&"abcdefg/".repeat(129), PathError::TooLong),
            (&["a"; 65].join("/"), PathError::TooDeep),
        ];
        for (text, error) in bad {
            assert_eq!(FilePath::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(path(&["a"; 64].join("/")).names().count(), 64);
    }

    #[test]
    fn a_path_that_commands_see_is_one_in_the_workspace() {
        let resolve = FilePath::resolve;
        for (text, resolved) in [
            ("a/b", "a/b"),
            ("./a//b/../c/", "a/c"),
            ("workspace/a", "workspace/a"),
            ("/workspace/a", "a"),
            ("//workspace//a", "a"),
            ("/tmp/../workspace/a", "a"),
            ("/workspace/workspace", "workspace"),
            ("/var/lib/runs/3/run-0123456789abcdef/workspace/src/a", "src/a"),
            ("/tmp/run-0123456789abcdef-2/workspace/./a", "a"),
        ] {
            assert_eq!(resolve(text), Ok(Some(path(resolved))), "{text:?}");
        }
        for root in "/ // . /workspace /workspace/ a/.. /tmp/run-0123456789abcdef/workspace".split(' ') {
            assert_eq!(resolve(root), Ok(None), "{root:?}");
        }
        for elsewhere in [
            "/a",
            "/etc/x",
            "/workspaces/a",
            "/home/workspace/a",
            "/workspace/../etc",
            "/workspace/..",
            "/tmp/run-0123456789abcdef/scratch",
            "/tmp/run-0123456789abcde/workspace",
            "/tmp/run-0123456789abcdef-/workspace",
            "/tmp/run-0123456789abcdef/workspace/../x",
        ] {
            assert_eq!(resolve(elsewhere), Err(PathError::Elsewhere), "{elsewhere:?}");
        }
        for outside in ["..", "a/../../b", "/.."] {
            assert_eq!(resolve(outside), Err(PathError::Outside), "{outside:?}");
        }
        assert_eq!(resolve(""), Err(PathError::Empty));
        assert_eq!(resolve("a\0"), Err(PathError::Character));
        assert_eq!(resolve(&"./".repeat(4_000)), Err(PathError::TooLong));
    }

    #[test]
    fn a_path_knows_its_parts() {
        let file = path("a/b/c");
        assert_eq!((file.name(), file.parent()), ("c", Some(path("a/b"))));
        assert_eq!((path("a").name(), path("a").parent()), ("a", None));
        assert_eq!(path("a/b").join("c"), Ok(file.clone()));
        assert_eq!(path("a").join("b/c"), Err(PathError::Character));
        assert_eq!(path(&["a"; 64].join("/")).join("a"), Err(PathError::TooDeep));
        assert_eq!(
            path(&vec!["x".repeat(255); 4].join("/")).join("y"),
            Err(PathError::TooLong)
        );
        assert!(file.is_below(&path("a")) && file.is_below(&path("a/b")));
        assert!(!file.is_below(&file) && !path("ab").is_below(&path("a")));
    }

    #[test]
    fn json_has_the_text_and_checks_it() {
        let file = path("a/b");
        let json = serde_json::to_string(&file).unwrap();
        assert_eq!((json.as_str(), serde_json::from_str(&json).unwrap()), ("\"a/b\"", file));
        assert!(serde_json::from_str::<FilePath>("\"../a\"").is_err());
    }
}
