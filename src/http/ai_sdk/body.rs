//! The objects of the AI SDK, in the description of this interface.

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::described_schemas::any_object;

/// An object of the AI SDK.
#[derive(Debug)]
pub(super) struct AiSdkObject;

impl PartialSchema for AiSdkObject {
    fn schema() -> RefOr<Schema> {
        any_object("An object as the AI SDK has it.")
    }
}

impl ToSchema for AiSdkObject {}
