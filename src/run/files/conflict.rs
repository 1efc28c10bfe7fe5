//! What two sessions did to the same part of their environments.

use workspace::ConflictKind;

/// Something that can't be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentConflict {
    /// What it is part of.
    pub part: ConflictPart,
    /// The path of a file, or the name of a value.
    pub name: String,
    /// What the two sides did to it.
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
