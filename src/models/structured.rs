//! A model whose provider needs another way of structured output than its protocol offers.

use std::sync::Arc;

use crate::agent::ports::{Model, ModelRequest, ModelStream, StructuredOutput};

/// Answers as the model within, and is made to keep a shape as it is told.
#[derive(Debug)]
pub(super) struct StructuredBy {
    model: Arc<dyn Model>,
    by: StructuredOutput,
}

impl StructuredBy {
    /// Returns the model; with no way told, as it is.
    pub(super) fn wrap(model: Arc<dyn Model>, by: Option<StructuredOutput>) -> Arc<dyn Model> {
        match by {
            Some(by) => Arc::new(Self { model, by }),
            None => model,
        }
    }
}

impl Model for StructuredBy {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.model.stream(request)
    }

    fn structured_output(&self) -> StructuredOutput {
        self.by
    }
}
