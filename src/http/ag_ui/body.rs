//! The body of a request, in the description of this interface.

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::described_schemas::any_object;

/// A request to run an agent.
#[derive(Debug)]
pub(super) struct RunAgentInput;

impl PartialSchema for RunAgentInput {
    fn schema() -> RefOr<Schema> {
        any_object("A request as AG-UI 1.0 has it.")
    }
}

impl ToSchema for RunAgentInput {}
