//! The scripted model: implements the port, and plays the pieces with their delays.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};

use super::play::{Piece, play};
use super::script::Script;
use agent::ports::{Model, ModelError, ModelEvent, ModelRequest, ModelStream, StructuredOutput};
use values::ids::IdSource;

/// A model that plays a script.
#[derive(Debug, Clone)]
pub struct Scripted {
    script: Arc<Script>,
    ids: Arc<dyn IdSource>,
    structured_output: StructuredOutput,
}

impl Scripted {
    /// Makes a model from a script. The ids of its calls come from `ids`.
    pub fn new(script: Script, ids: Arc<dyn IdSource>) -> Self {
        Self {
            script: Arc::new(script),
            ids,
            structured_output: StructuredOutput::default(),
        }
    }

    /// Sets how the model is asked for structured output, if `by` is given.
    #[must_use]
    pub fn structured_by(self, by: Option<StructuredOutput>) -> Self {
        Self {
            structured_output: by.unwrap_or(self.structured_output),
            ..self
        }
    }
}

impl Model for Scripted {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let Self { script, ids, .. } = self.clone();
        let pieces = stream::once(async move { stream::iter(play(&script, &request, ids.as_ref())) });
        pieces.flatten().then(in_time).boxed()
    }

    fn structured_output(&self) -> StructuredOutput {
        self.structured_output
    }
}

async fn in_time((delay, event): Piece) -> Result<ModelEvent, ModelError> {
    // Even a timer of zero would wait for the scheduler.
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    event
}
