//! `[workspace]`: limits of the files of a session.

use serde::Deserialize;

use super::values::integer;

/// Limits of a workspace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Bytes of one file.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_file_bytes: u64,
    /// Files, symbolic links and directories of one session.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_files: u64,
    /// Bytes of all files of one session.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_099_511_627_776, _>")]
    pub max_bytes: u64,
}
