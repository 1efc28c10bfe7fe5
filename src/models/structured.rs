//! A model whose provider needs another way of structured output than its protocol offers.

use std::sync::Arc;

use crate::agent::ports::{Model, ModelRequest, ModelStream, StructuredOutput};

/// Wraps a model and asks it for structured output in the configured way.
#[derive(Debug)]
pub(super) struct StructuredBy {
    model: Arc<dyn Model>,
    by: StructuredOutput,
}

impl StructuredBy {
    /// Wraps the model, unless no way is configured.
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
