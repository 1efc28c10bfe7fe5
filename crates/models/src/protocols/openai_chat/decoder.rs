//! Reads chunks of completions, and whole ones.

use std::sync::Arc;

use super::completion::Completion;
use crate::body::protocol;
use crate::decoder::{FrameReader, Progress, StreamDecoder, read_object};
use crate::ending::reason_of;
use crate::errors::{error_in, error_of_frame};
use crate::fields::{self, Fields};
use crate::openai_usage::{CHAT, read_usage};
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;

/// Decodes one completion.
pub(super) type ChatDecoder = StreamDecoder<ChatReader>;

/// Reads one completion.
#[derive(Debug)]
pub(super) struct ChatReader {
    completion: Completion,
    saw_choices: bool,
}

impl ChatDecoder {
    /// Splits off the reasoning between `<think>` and `</think>` at the beginning of the text.
    #[must_use]
    pub(super) fn splitting_think_tags(mut self) -> Self {
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
        let chunk = read_object(data)?;
        self.take_chunk(&chunk, data, false, events)?;
        Ok(Progress::Open)
    }

    /// Completes the response, since some servers send the mark without a finish reason. Then the
    /// arguments of a call must be complete.
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
        let chunk = read_object(body)?;
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

    fn has_open_parts(&self) -> bool {
        !self.completion.is_finished() && self.completion.has_open_calls()
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
        let choices = chunk.list("choices");
        if let Some(error) = error_in(chunk, text, choices.is_some() || chunk.get("usage").is_some()) {
            return Err(error);
        }
        self.saw_choices |= choices.as_ref().is_some_and(|choices| !whole || !choices.is_empty());
        for (position, raw) in (0..).zip(choices.into_iter().flatten()) {
            let Some(choice) = fields::object(raw) else { continue };
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
            if let Some(reason) = reason_of(&choice, "finish_reason") {
                self.completion.take_finish_reason(&reason);
            }
        }
        Ok(())
    }
}
