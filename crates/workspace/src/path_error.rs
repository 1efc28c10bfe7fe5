//! Why a text is no path in a workspace.

use super::limits::{MAX_LEVELS, MAX_NAME_BYTES, MAX_PATH_BYTES};

/// Why a text is no path in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text, or a name in it, is empty.
    #[error("a path must not be empty, begin or end with `/`, or contain `//`")]
    Empty,
    /// A name is `.` or `..`.
    #[error("a path must not contain the names `.` and `..`")]
    Relative,
    /// A name has a control character or, where a single name is expected, a `/`.
    #[error("a name must not contain control characters or `/`")]
    Character,
    /// The path leads out of the workspace.
    #[error("the path leads out of the workspace")]
    Outside,
    /// The path is an absolute one of the host.
    #[error("the path is outside of the workspace, which is at /workspace")]
    Elsewhere,
    /// A name is too long.
    #[error("a name has more than {MAX_NAME_BYTES} bytes")]
    NameTooLong,
    /// The path is too long.
    #[error("the path has more than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// The path has too many levels.
    #[error("the path has more than {MAX_LEVELS} levels")]
    TooDeep,
}
