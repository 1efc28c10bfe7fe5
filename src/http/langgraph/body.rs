//! The objects of LangGraph, in the description of this interface.

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::described_schemas::any_object;

/// An object of LangGraph.
#[derive(Debug)]
pub(super) struct LangGraphObject;

impl PartialSchema for LangGraphObject {
    fn schema() -> RefOr<Schema> {
        any_object("An object as LangGraph has it.")
    }
}

impl ToSchema for LangGraphObject {}
