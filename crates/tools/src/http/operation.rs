//! A request with the description of its arguments, from which a tool is made.

use std::sync::Arc;

use super::plan::RequestPlan;
use values::json::{JsonSchema, Value};

/// A request with the description of its arguments.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) description: String,
    /// The schema of the arguments; `null` if the plan decides.
    pub(super) parameters: Value,
    /// The compiled schema, if it is compiled already.
    pub(super) schema: Option<Arc<JsonSchema>>,
    pub(super) plan: RequestPlan,
}
