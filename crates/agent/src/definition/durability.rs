//! Durability: how much of an execution survives its process.

use serde::{Deserialize, Serialize};

/// The parts of a run that are persisted during its execution.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = unknown)]
pub enum Durability {
    /// The session that it continues: another worker begins it anew.
    #[default]
    Session,
    /// Each completed step and each tool call: another worker continues after them.
    Step,
}

impl Durability {
    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The durability that an agent or a request wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityChoice {
    /// `step` for a run of the queue whose tools may not all be called again, `session` for every
    /// other one.
    #[default]
    Auto,
    /// The session that it continues: another worker begins it anew.
    Session,
    /// Each completed step and each tool call: another worker continues after them.
    Step,
}

impl DurabilityChoice {
    /// Returns the durability of a run. `Auto` avoids a restart that would call unrepeatable tools
    /// again.
    pub fn resolve(self, is_queued: bool, has_unrepeatable_tools: bool) -> Durability {
        match self {
            Self::Auto if is_queued && has_unrepeatable_tools => Durability::Step,
            Self::Auto | Self::Session => Durability::Session,
            Self::Step => Durability::Step,
        }
    }
}

impl From<Durability> for DurabilityChoice {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Session => Self::Session,
            Durability::Step => Self::Step,
        }
    }
}

fn unknown(name: &str) -> String {
    format!("{name:?} is none of session, step")
}
