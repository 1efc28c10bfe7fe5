//! The targets of symlinks: relative, and inside the tree.
//!
//! The check is lexical: it does not know the kinds of the entries on the way to a target. A target
//! may still lead out of the tree through another symlink. `resolve.rs` finds that when it follows
//! them.

use super::error::TreeError;
use super::limits::MAX_PATH_BYTES;
use super::path::{FilePath, check_name};

/// Checks the target of the symlink at a path.
pub(super) fn check_target(path: &FilePath, target: &str) -> Result<(), TreeError> {
    let levels = path.names().count() - 1;
    if is_valid_target(target) && climb(target) <= levels {
        return Ok(());
    }
    Err(TreeError::UnsafeSymlink {
        path: path.clone(),
        target: target.to_owned(),
    })
}

/// Returns whether a target can be one of any symlink: relative, and made of valid names.
pub(super) fn is_valid_target(target: &str) -> bool {
    let is_valid = |name: &str| matches!(name, "" | "." | "..") || check_name(name).is_ok();
    !target.is_empty() && target.len() <= MAX_PATH_BYTES && !target.starts_with('/') && target.split('/').all(is_valid)
}

/// Returns how many levels above the directory of its symlink a prefix of the target leads at most.
pub(super) fn climb(target: &str) -> usize {
    let (mut level, mut lowest) = (0_isize, 0);
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => level -= 1,
            _ => level += 1,
        }
        lowest = lowest.min(level);
    }
    lowest.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_stays_inside_the_tree() {
        let link = FilePath::parse("a/b/link").unwrap();
        for good in ["x", "../x", "../../x", "./x//y/", "..", "../..", "../../c/../d", "..x"] {
            assert!(check_target(&link, good).is_ok(), "{good}");
        }
        let long = "x/".repeat(513);
        for bad in [
            "",
            "/",
            "/x",
            "../../..",
            "../../../a/b/x",
            "c/../../../..",
            "x\0",
            "x\n",
            &long,
        ] {
            let error = check_target(&link, bad).unwrap_err();
            assert!(matches!(error, TreeError::UnsafeSymlink { .. }), "{bad}: {error}");
        }
    }
}
