//! Changes by two sessions to the same part of their environments.

use workspace::ConflictKind;

/// A file or a value that can't be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentConflict {
    /// The part of the environment.
    pub part: ConflictPart,
    /// The path of a file, or the name of a value.
    pub name: String,
    /// The changes of the two sides.
    pub kind: ConflictKind,
}

/// A part of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictPart {
    /// The files.
    Files,
    /// The variables.
    Variables,
    /// The resources.
    Resources,
}
