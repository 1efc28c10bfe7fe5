//! Decodes responses: bytes in, events out. No IO, and no panic for any bytes.
//!
//! A response is a stream of server-sent events, one JSON body, or a JSON list of chunks.

use std::sync::Arc;

use super::completion::{Completion, Fault};
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::models::body::{Body, broken_down, protocol, truncated};
use crate::models::calls::CallFault;
use crate::models::errors::error_of_frame;
use crate::models::framed::FrameDecoder;
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::sse::SseEvent;
use crate::models::wire::{self, Fields};

/// Decodes one completion.
#[derive(Debug)]
pub struct GeminiDecoder {
    provider: String,
    caps: CapSettings,
    body: Body,
    saw_frame: bool,
    saw_completion: bool,
    completion: Option<Completion>,
}

impl GeminiDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            body: Body::new(content_type, caps),
            saw_frame: false,
            saw_completion: false,
            completion: Some(Completion::new(ids, caps)),
        }
    }
}

impl FrameDecoder for GeminiDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let data = frame.data.trim();
        // The mark that ends other protocols' streams; gateways add it.
        if self.is_done() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        self.saw_frame = true;
        self.take_chunk(data, events)
    }

    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        // Some servers forget the last blank line; a piece that was cut off is no JSON.
        if let Some(frame) = last.filter(|frame| Fields::parse(frame.data.trim()).is_some()) {
            self.take_frame(&frame, events)?;
        }
        if self.is_finished() {
            return self.complete(events);
        }
        if self.saw_frame && !self.saw_completion {
            return Err(protocol("the stream has no completion".to_owned(), ""));
        }
        Err(truncated())
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if !body.starts_with('[') {
            self.take_chunk(body, events)?;
            if !self.saw_completion {
                return Err(protocol("the response has no candidate".to_owned(), body));
            }
            return self.complete(events);
        }
        // The form of streams that were not asked for as events, and of some errors.
        let chunks = wire::read_list(body).map_err(|error| {
            if error.is_eof() {
                truncated()
            } else {
                protocol("the response is not JSON, or a list that is too long".to_owned(), body)
            }
        })?;
        self.saw_frame = !chunks.is_empty();
        for chunk in chunks {
            self.take_chunk(chunk.get(), events)?;
        }
        self.finish_events(None, events)
    }

    fn is_done(&self) -> bool {
        self.completion.is_none()
    }

    fn is_finished(&self) -> bool {
        self.completion.as_ref().is_none_or(Completion::is_finished)
    }
}

impl GeminiDecoder {
    fn take_chunk(&mut self, text: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let chunk: Fields<'_> = match serde_json::from_str(text) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => return Err(truncated()),
            Err(_) => return Err(protocol("the response is not a JSON object".to_owned(), text)),
        };
        if chunk.has_error() {
            return Err(error_of_frame(text));
        }
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        completion.take_envelope(&chunk);
        let mut outcome = Ok(());
        if let Some(candidate) = candidate(&chunk) {
            self.saw_completion = true;
            outcome = completion.take_candidate(&candidate, events);
        }
        self.saw_completion |= completion.is_blocked();
        events.extend(completion.changed_usage().map(ModelEvent::Usage));
        outcome.map_err(|fault| self.failure(fault, text))
    }

    fn complete(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(mut completion) = self.completion.take() else {
            return Ok(());
        };
        events.extend(completion.changed_usage().map(ModelEvent::Usage));
        if let Some(message) = completion.breakdown() {
            return Err(broken_down(message));
        }
        let response = completion.finish(&self.provider, events);
        events.push(ModelEvent::Completed(Box::new(response)));
        Ok(())
    }

    fn failure(&self, fault: Fault, text: &str) -> AttemptError {
        let message = match fault {
            Fault::Call(CallFault::TooMany) => {
                format!("the response has more than {} tool calls", self.caps.tool_calls)
            }
            Fault::Full(full) => return full.into(),
            Fault::Call(CallFault::Nameless) => return protocol("a tool call has no name".to_owned(), text),
        };
        protocol(message, "")
    }
}

/// Returns the first candidate of a chunk; others are never asked for.
fn candidate<'a>(chunk: &Fields<'a>) -> Option<Fields<'a>> {
    let candidates = chunk.list("candidates")?;
    let mut candidates = candidates.into_iter().filter_map(wire::object);
    candidates.find(|candidate| candidate.count("index").unwrap_or_default() == 0)
}
