//! How the run ended that published a session.

use serde::{Deserialize, Serialize};

/// The final status of a run that has published a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Ended with its work done.
    Completed,
    /// Ended before its work was done.
    Stopped,
    /// Ended with calls that wait for answers. Stays so in the session when they are answered.
    Waiting,
}

impl RunOutcome {
    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
        }
    }

    /// Finds the outcome of a name; `None` for a name of a later version.
    pub fn find(name: &str) -> Option<Self> {
        let all = [Self::Completed, Self::Stopped, Self::Waiting];
        all.into_iter().find(|outcome| outcome.as_str() == name)
    }
}
