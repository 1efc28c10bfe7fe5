//! The objects of the AI SDK, in the description of this interface.

use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An object of the AI SDK.
#[derive(Debug)]
pub(super) struct AiSdkObject;

impl PartialSchema for AiSdkObject {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("An object as the AI SDK has it."))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
            .into()
    }
}

impl ToSchema for AiSdkObject {}
