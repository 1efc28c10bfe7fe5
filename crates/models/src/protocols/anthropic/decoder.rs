//! Reads the events of a stream, and whole messages.

use std::borrow::Cow;
use std::sync::Arc;

use super::completion::Completion;
use crate::body::protocol;
use crate::decoder::{FrameReader, Progress, StreamDecoder, read_object};
use crate::errors::error_in;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;

/// Decodes one completion.
pub(super) type MessagesDecoder = StreamDecoder<MessagesReader>;

/// Reads one message.
#[derive(Debug)]
pub(super) struct MessagesReader {
    completion: Completion,
    has_begun: bool,
}

impl FrameReader for MessagesReader {
    const NOTHING: &'static str = "the stream has no message";

    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            completion: Completion::new(provider, ids, caps),
            has_begun: false,
        }
    }

    fn take_frame(&mut self, name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let event = read_object(data)?;
        let kind = event.borrowed_filled("type").unwrap_or(Cow::Borrowed(name));
        if let Some(error) = error_in(&event, data, !name.is_empty()) {
            return Err(error);
        }
        match kind.as_ref() {
            "message_stop" if !self.has_begun => Err(protocol(Self::NOTHING.to_owned(), data)),
            "message_stop" => Ok(Progress::Complete),
            // Some servers send the whole message at once.
            "message" => self.take_message(&event, data, events).map(|()| Progress::Open),
            kind => self.take_event(kind, &event, data, events).map(|()| Progress::Open),
        }
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let message = read_object(body)?;
        if let Some(error) = error_in(&message, body, true) {
            return Err(error);
        }
        self.take_message(&message, body, events)?;
        Ok(Progress::Complete)
    }

    fn has_nothing(&self) -> bool {
        !self.has_begun
    }

    fn is_finished(&self) -> bool {
        self.completion.is_finished()
    }

    fn has_open_parts(&self) -> bool {
        !self.completion.is_finished() && self.completion.has_open_calls()
    }

    fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        events.extend(self.completion.changed_usage());
        Ok(self.completion.finish(events))
    }
}

impl MessagesReader {
    fn take_event(
        &mut self,
        kind: &str,
        event: &Fields<'_>,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let completion = &mut self.completion;
        let index = event.count("index");
        let mut outcome = Ok(());
        match kind {
            "message_start" => completion.take_envelope(&event.object("message").unwrap_or_default()),
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    outcome = completion.begin(index, block, events);
                }
            }
            "content_block_delta" => {
                let delta = event.object("delta").unwrap_or_default();
                outcome = completion.add(index, &delta, events);
            }
            "content_block_stop" => completion.end(index),
            "message_delta" => {
                completion.take_end(&event.object("delta").unwrap_or_default());
                completion.take_usage(event);
            }
            // Pings, and unknown events of later protocol versions.
            _ => return Ok(()),
        }
        self.has_begun = true;
        events.extend(completion.changed_usage());
        outcome.map_err(|fault: Fault| fault.error(text))
    }

    fn take_message(
        &mut self,
        message: &Fields<'_>,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let is_message = message.borrowed_text("type").as_deref() == Some("message") && message.has("content");
        if !is_message && message.list("content").is_none() {
            let error = error_in(message, text, false);
            return Err(error.unwrap_or_else(|| protocol("the response is not a message".to_owned(), text)));
        }
        self.has_begun = true;
        let completion = &mut self.completion;
        let outcome = completion.take_blocks(message, events);
        completion.take_envelope(message);
        events.extend(completion.changed_usage());
        outcome.map_err(|fault| fault.error(text))
    }
}
