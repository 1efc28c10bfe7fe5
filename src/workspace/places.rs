//! Where commands find the files of a workspace.

/// How the name of the directory of a run begins.
pub const RUN_NAME_PREFIX: &str = "run-";
/// How many hexadecimal digits follow.
pub const RUN_NAME_DIGITS: usize = 16;
/// The name of the directory in it that has the files.
pub const RUN_FILES: &str = "workspace";
