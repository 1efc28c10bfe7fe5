//! Where commands find the files of a workspace, and which absolute paths lead there.
//!
//! With a mount namespace, a command has them at `/workspace`. Without one, it has them in the
//! directory of its run, whose path has a form that nothing else has:
//! `…/run-0123456789abcdef/workspace`. Paths of other runs mean the same file: a conversation may
//! go on in another directory.

use super::path_error::PathError;

/// Where commands with a mount namespace have the files: the name in the root directory.
const WORKSPACE_NAME: &str = "workspace";
/// How the name of the directory of a run begins.
pub(super) const RUN_NAME_PREFIX: &str = "run-";
/// How many hexadecimal digits follow.
pub(super) const RUN_NAME_DIGITS: usize = 16;
/// The name of the directory in it that has the files.
pub(super) const RUN_FILES: &str = "workspace";

/// Returns the names of a path from the root of the workspace on. The path is absolute, or relative
/// to the root. Resolves `.`, `..` and several `/` in a row, without regard to symlinks.
pub(super) fn names_in_workspace(text: &str) -> Result<Vec<&str>, PathError> {
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or(PathError::Outside)?;
            }
            name => names.push(name),
        }
    }
    if text.starts_with('/') && !text.split('/').all(|name| matches!(name, "" | ".")) {
        let below = below_root(&names).ok_or(PathError::Elsewhere)?;
        names.drain(..below);
    }
    Ok(names)
}

/// Returns an absolute pattern relative to the root of the workspace.
pub fn pattern_in_workspace(pattern: &str) -> Result<String, PathError> {
    names_in_workspace(pattern).map(|names| names.join("/"))
}

/// Returns the part of a relative path that leads to the root, if the path is an absolute path
/// without its first `/`.
pub fn root_of_relative(text: &str) -> Option<String> {
    let names: Vec<_> = text.split('/').collect();
    below_root(&names).map(|below| names[..below].join("/"))
}

/// Returns how many of the names of an absolute path lead to the root of the workspace.
fn below_root(names: &[&str]) -> Option<usize> {
    if names.first() == Some(&WORKSPACE_NAME) {
        return Some(1);
    }
    let is_run = |pair: &[&str]| matches!(pair, [run, RUN_FILES] if is_run_name(run));
    names.windows(2).rposition(is_run).map(|index| index + 2)
}

/// Returns whether a name is the name of a run's directory. Forks have a number behind it.
fn is_run_name(name: &str) -> bool {
    let hash = name.strip_prefix(RUN_NAME_PREFIX).unwrap_or_default();
    let (hash, number) = hash.split_once('-').unwrap_or((hash, "2"));
    let is_hash = hash.len() == RUN_NAME_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
