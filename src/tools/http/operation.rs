//! A request with the description of its arguments, from which a tool is made.

use super::plan::RequestPlan;
use crate::json::Value;

/// A request with the description of its arguments.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) description: String,
    /// The schema of the arguments; `null` if the plan decides.
    pub(super) parameters: Value,
    pub(super) plan: RequestPlan,
}
