//! Reads chunks of completions.
//!
//! A response is a stream of server-sent events, one JSON body, or a JSON list of chunks.

use std::sync::Arc;

use super::completion::Completion;
use crate::body::{protocol, truncated};
use crate::decoder::{FrameReader, Progress, StreamDecoder, not_json, read_object};
use crate::errors::error_in;
use crate::fields;
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;

/// Decodes one completion.
pub(super) type GeminiDecoder = StreamDecoder<GeminiReader>;

/// Reads one completion.
#[derive(Debug)]
pub(super) struct GeminiReader {
    completion: Completion,
    has_begun: bool,
}

impl FrameReader for GeminiReader {
    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            completion: Completion::new(provider, ids, caps),
            has_begun: false,
        }
    }

    /// Events have no names in this protocol.
    fn error(_name: &str, _data: &str) -> Option<AttemptError> {
        None
    }

    fn take_frame(&mut self, _name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        self.take_chunk(data, events)?;
        Ok(Progress::Open)
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        if !body.starts_with('[') {
            self.take_chunk(body, events)?;
            if !self.has_begun {
                return Err(protocol("the response has no candidate".to_owned(), body));
            }
            return Ok(Progress::Complete);
        }
        // Streams that were not requested as events, and some errors, have this form.
        let chunks = fields::read_list(body)
            .map_err(|error| not_json(&error, "the response is not JSON, or a list that is too long", body))?;
        if chunks.is_empty() {
            return Err(truncated());
        }
        for chunk in chunks {
            self.take_chunk(chunk.get(), events)?;
        }
        Ok(Progress::Ended)
    }

    fn has_nothing(&self) -> bool {
        !self.has_begun
    }

    fn is_finished(&self) -> bool {
        self.completion.is_finished()
    }

    fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        events.extend(self.completion.changed_usage());
        Ok(self.completion.finish(events))
    }
}

impl GeminiReader {
    fn take_chunk(&mut self, text: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let chunk = read_object(text)?;
        let is_part = chunk.has("candidates") || chunk.has("usageMetadata");
        if let Some(error) = error_in(&chunk, text, is_part) {
            return Err(error);
        }
        let completion = &mut self.completion;
        completion.take_envelope(&chunk);
        let mut outcome = Ok(());
        for (position, candidate) in (0..).zip(chunk.items("candidates")) {
            let Some(candidate) = fields::object(candidate) else {
                continue;
            };
            self.has_begun = true;
            let number = candidate.count("index").unwrap_or(position);
            outcome = outcome.and_then(|()| completion.take_candidate(number, &candidate, events));
        }
        self.has_begun |= completion.is_blocked();
        events.extend(completion.changed_usage());
        outcome.map_err(|fault| fault.error(text))
    }
}
