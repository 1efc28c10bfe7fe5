//! How much of an execution outlives its process.

use serde::{Deserialize, Serialize};

/// What is kept of a run that its worker did not end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The session that it continues: another worker begins it anew.
    #[default]
    Session,
    /// Each completed step and each tool call: another worker goes on after them.
    Step,
}

impl Durability {
    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Step => "step",
        }
    }
}

impl std::str::FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "session" => Ok(Self::Session),
            "step" => Ok(Self::Step),
            _ => Err(format!("{text:?} is none of session, step")),
        }
    }
}
