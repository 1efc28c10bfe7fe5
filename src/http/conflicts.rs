//! Conflicts of a merge, on the wire.

use serde::Serialize;
use utoipa::ToSchema;

use crate::run::refusal::{ConflictPart, EnvironmentConflict};
use workspace::ConflictKind;

/// Something that can't be merged.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Conflict {
    /// The part of the environment.
    part: Part,
    /// The path of a file, or the name of a value.
    name: String,
    /// How the two sessions changed it.
    kind: Kind,
}

/// A part of an environment.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConflictPart)]
enum Part {
    /// A file.
    Files,
    /// A variable.
    Variables,
    /// A resource.
    Resources,
}

/// The changes of two sessions that conflict.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConflictKind)]
enum Kind {
    /// Both changed it, in different ways.
    BothChanged,
    /// One session changed it, and the other deleted it.
    ChangedAndDeleted,
    /// Both added it, with different contents.
    BothAdded,
    /// The path would be a file and a directory.
    FileAndDirectory,
}

impl From<EnvironmentConflict> for Conflict {
    fn from(EnvironmentConflict { part, name, kind }: EnvironmentConflict) -> Self {
        Self {
            part: match part {
                ConflictPart::Files => Part::Files,
                ConflictPart::Variables => Part::Variables,
                ConflictPart::Resources => Part::Resources,
            },
            name,
            kind: match kind {
                ConflictKind::BothChanged => Kind::BothChanged,
                ConflictKind::ChangedAndDeleted => Kind::ChangedAndDeleted,
                ConflictKind::BothAdded => Kind::BothAdded,
                ConflictKind::FileAndDirectory => Kind::FileAndDirectory,
            },
        }
    }
}
