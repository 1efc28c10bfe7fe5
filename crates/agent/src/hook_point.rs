//! The points of the loop at which hooks are called.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

/// A point of the loop.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HookPoint {
    /// Once, before the first step.
    BeforeExecution,
    /// Before each step.
    BeforeStep,
    /// Before each request to a model, those to fallbacks included.
    BeforeModelRequest,
    /// After each completion of a model, also a cut one.
    AfterModelRequest,
    /// Before each call of a tool, in the order of the calls.
    BeforeToolUse,
    /// After each call of a tool, in the order in which they end.
    AfterToolUse,
    /// After each step that had errors.
    OnError,
    /// After each step, before it is archived.
    AfterStep,
    /// Once, when the loop ends.
    OnStop,
    /// Once, after everything else.
    AfterExecution,
}

impl HookPoint {
    /// All points, in the order of the loop.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name that configuration and events use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
