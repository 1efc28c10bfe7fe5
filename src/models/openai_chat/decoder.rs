//! Reads chunks of completions, and whole ones.

use std::sync::Arc;

use super::completion::Completion;
use crate::agent::ports::ModelEvent;
use crate::agent::state::ModelResponse;
use crate::ids::IdSource;
use crate::models::body::protocol;
use crate::models::decoder::{FrameReader, Progress, StreamDecoder, not_json};
use crate::models::errors::error_of_frame;
use crate::models::openai_usage::{CHAT, read_usage};
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::wire::{self, Fields};

/// Decodes one completion.
pub type ChatDecoder = StreamDecoder<ChatReader>;

/// Reads one completion.
#[derive(Debug)]
pub struct ChatReader {
    completion: Completion,
    saw_choices: bool,
}

impl ChatDecoder {
    /// Splits off the reasoning between `<think>` and `</think>` at the beginning of the text.
    #[must_use]
    pub fn splitting_think_tags(mut self) -> Self {
        if let Some(reader) = self.reader() {
            reader.completion.split_think_tags();
        }
        self
    }
}

impl FrameReader for ChatReader {
    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            completion: Completion::new(provider, ids, caps),
            saw_choices: false,
        }
    }

    /// An event named `error` is an error even without data.
    fn error(name: &str, data: &str) -> Option<AttemptError> {
        (name == "error").then(|| error_of_frame(data))
    }

    fn take_frame(&mut self, _name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let chunk = read_chunk(data)?;
        self.take_chunk(&chunk, data, false, events)?;
        Ok(Progress::Open)
    }

    /// Completes the response, since some servers send the mark without a finish reason.
    fn take_done(&mut self, events: &mut Vec<ModelEvent>) -> Progress {
        self.completion.end_text(events);
        if self.completion.is_finished() || self.completion.has_content() {
            Progress::Complete
        } else {
            Progress::Ended
        }
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        if body.is_empty() {
            return Err(protocol("the response is empty".to_owned(), body));
        }
        let chunk = read_chunk(body)?;
        self.take_chunk(&chunk, body, true, events)?;
        if !self.saw_choices {
            return Err(protocol("the response is not a chat completion".to_owned(), body));
        }
        Ok(Progress::Complete)
    }

    fn has_nothing(&self) -> bool {
        !self.saw_choices
    }

    fn is_finished(&self) -> bool {
        self.completion.is_finished()
    }

    fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        self.completion.end_text(events);
        self.completion.finish().map_err(|fault| fault.error(""))
    }
}

impl ChatReader {
    /// Reads a chunk. Reads its usage even if the chunk is an error or unusable.
    fn take_chunk(
        &mut self,
        chunk: &Fields<'_>,
        text: &str,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let taken = self.take_choices(chunk, text, whole, events);
        self.completion.take_envelope(chunk, read_usage(chunk, &CHAT), events);
        taken
    }

    fn take_choices(
        &mut self,
        chunk: &Fields<'_>,
        text: &str,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        if chunk.is_error() {
            return Err(error_of_frame(text));
        }
        let choices = chunk.list("choices");
        self.saw_choices |= choices.as_ref().is_some_and(|choices| !whole || !choices.is_empty());
        for (position, raw) in (0..).zip(choices.into_iter().flatten()) {
            let Some(choice) = wire::object(raw) else { continue };
            if choice.has_error() {
                return Err(error_of_frame(raw.get()));
            }
            // Gateways that split a message into choices give them no numbers, or all the same.
            let number = choice.count("index").filter(|_| !whole).unwrap_or(position);
            let piece = choice.object("delta").map(|delta| (delta, whole));
            if let Some((message, whole)) = piece.or_else(|| Some((choice.object("message")?, true))) {
                let taken = self.completion.take_message(number, &message, whole, events);
                taken.map_err(|fault| fault.error(raw.get()))?;
            }
            if let Some(reason) = choice.filled("finish_reason") {
                self.completion.take_finish_reason(&reason);
            }
        }
        Ok(())
    }
}

/// Parses a chunk as an object. If the text is a list of errors instead, returns its error.
fn read_chunk(text: &str) -> Result<Fields<'_>, AttemptError> {
    serde_json::from_str(text).map_err(|error| {
        if is_error_list(text) {
            return error_of_frame(text);
        }
        not_json(&error, "the response is not a JSON object", text)
    })
}

fn is_error_list(text: &str) -> bool {
    let first = wire::parse_list(text).and_then(|items| items.into_iter().next());
    first.and_then(wire::object).is_some_and(|first| first.has_error())
}
