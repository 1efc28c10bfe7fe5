//! The limits of a workspace: limits of the operator, and ceilings that bound the cost of reading
//! hostile data.

use serde::Deserialize;

use values::settings::integer;

/// The most levels of a path.
pub(super) const MAX_LEVELS: usize = 64;
/// The most bytes of a path, and of the target of a symlink.
pub const MAX_PATH_BYTES: usize = 1_024;
/// The most bytes of a name in a path.
pub(super) const MAX_NAME_BYTES: usize = 255;
/// The most symlinks that one path may lead through.
pub(super) const MAX_LINKS: usize = 40;
/// The ceiling of `file_bytes`: no larger file can be written or read.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 30;
/// The ceiling of `files`: no larger tree can be written or walked.
pub(super) const MAX_FILES: u64 = 1_000_000;

/// The most that a workspace may contain. Each change of a tree that makes it larger is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct WorkspaceLimits {
    /// The most bytes of one file; at most the value of [`Self::CEILINGS`].
    #[serde(
        rename = "max_file_bytes",
        deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>"
    )]
    pub file_bytes: u64,
    /// The most files, symlinks and directories together; at most the value of [`Self::CEILINGS`].
    #[serde(rename = "max_files", deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub files: u64,
    /// The most bytes of all files.
    #[serde(rename = "max_bytes", deserialize_with = "integer::<_, 1_024, 1_099_511_627_776, _>")]
    pub bytes: u64,
}

impl WorkspaceLimits {
    /// The ceilings: no tree that any configuration allows is larger.
    pub const CEILINGS: Self = Self {
        file_bytes: MAX_FILE_BYTES,
        files: MAX_FILES,
        bytes: u64::MAX,
    };
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            file_bytes: 32 << 20,
            files: 50_000,
            bytes: 1 << 30,
        }
    }
}
