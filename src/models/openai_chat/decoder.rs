//! Decodes responses, as server-sent events or one JSON body: bytes in, events out. No IO, and no
//! panic for any bytes.

use std::sync::Arc;

use super::completion::{Completion, Fault};
use super::usage::read_usage;
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::models::body::{Body, protocol, truncated};
use crate::models::errors::error_of_frame;
use crate::models::framed::FrameDecoder;
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::sse::SseEvent;
use crate::models::wire::{self, Fields};

/// Decodes one completion.
#[derive(Debug)]
pub struct ChatDecoder {
    provider: String,
    caps: CapSettings,
    body: Body,
    saw_frame: bool,
    saw_choices: bool,
    completion: Option<Completion>,
}

impl ChatDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            body: Body::new(content_type, caps),
            saw_frame: false,
            saw_choices: false,
            completion: Some(Completion::new(ids, caps)),
        }
    }

    /// Splits off the reasoning between `<think>` and `</think>` at the beginning of the text.
    #[must_use]
    pub fn splitting_think_tags(mut self) -> Self {
        if let Some(completion) = &mut self.completion {
            completion.split_think_tags();
        }
        self
    }
}

impl FrameDecoder for ChatDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let data = frame.data.trim();
        if self.is_done() {
            return Ok(());
        }
        if frame.name == "error" {
            return Err(error_of_frame(data));
        }
        if data == "[DONE]" {
            return self.end_of_frames(events);
        }
        self.saw_frame |= !data.is_empty();
        match self.read_chunk(data)? {
            Some(chunk) => self.take_chunk(&chunk, data, false, events),
            None => Ok(()),
        }
    }

    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        // Some servers forget the last blank line; a piece that was cut off is no JSON.
        let whole = |frame: &SseEvent| frame.data.trim() == "[DONE]" || Fields::parse(frame.data.trim()).is_some();
        if let Some(frame) = last.filter(whole) {
            self.take_frame(&frame, events)?;
        }
        match &self.completion {
            None => Ok(()),
            Some(completion) if completion.is_finished() => self.complete(events),
            Some(_) if self.saw_frame && !self.saw_choices => {
                Err(protocol("the stream has no completion".to_owned(), ""))
            }
            Some(_) => Err(truncated()),
        }
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(chunk) = self.read_chunk(body)? else {
            return Err(protocol("the response is empty".to_owned(), body));
        };
        self.take_chunk(&chunk, body, true, events)?;
        if !self.saw_choices {
            return Err(protocol("the response is not a chat completion".to_owned(), body));
        }
        self.complete(events)
    }

    fn is_done(&self) -> bool {
        self.completion.is_none()
    }

    fn is_finished(&self) -> bool {
        self.completion.as_ref().is_none_or(Completion::is_finished)
    }
}

impl ChatDecoder {
    /// Takes the mark at the end of a stream. Some servers send it without a reason for the end.
    fn end_of_frames(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if let Some(completion) = &mut self.completion {
            completion.end_text(events);
        }
        let has_answer = |completion: &Completion| completion.is_finished() || completion.has_content();
        if self.completion.as_ref().is_none_or(has_answer) {
            return self.complete(events);
        }
        if self.saw_frame && !self.saw_choices {
            return Err(protocol("the stream has no completion".to_owned(), ""));
        }
        Err(truncated())
    }

    /// Reads an object, or the error that the text is; `None` for no text.
    #[expect(clippy::unused_self, reason = "reads as a step of the decoder")]
    fn read_chunk<'a>(&self, text: &'a str) -> Result<Option<Fields<'a>>, AttemptError> {
        if text.is_empty() {
            return Ok(None);
        }
        match serde_json::from_str::<Fields<'a>>(text) {
            Ok(chunk) => Ok(Some(chunk)),
            Err(_) if is_error_list(text) => Err(error_of_frame(text)),
            Err(error) if error.is_eof() => Err(truncated()),
            Err(_) => Err(protocol("the response is not a JSON object".to_owned(), text)),
        }
    }

    /// Takes a chunk, and its usage even if the chunk is an error or unusable.
    fn take_chunk(
        &mut self,
        chunk: &Fields<'_>,
        text: &str,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let taken = self.take_choice(chunk, text, whole, events);
        if let Some(completion) = &mut self.completion {
            completion.take_envelope(chunk, read_usage(chunk), events);
        }
        taken
    }

    fn take_choice(
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
        let choice = choices.iter().flatten().find_map(|raw| {
            let choice = wire::object(raw)?;
            (choice.count("index").unwrap_or_default() == 0).then_some((choice, raw.get()))
        });
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        if let Some((choice, raw)) = choice {
            if choice.has_error() {
                return Err(error_of_frame(raw));
            }
            let piece = choice.object("delta").map(|delta| (delta, whole));
            if let Some((message, whole)) = piece.or_else(|| Some((choice.object("message")?, true))) {
                let taken = completion.take_message(&message, whole, events);
                taken.map_err(|fault| {
                    let message = format!("the response has more than {} tool calls", self.caps.tool_calls);
                    match fault {
                        Fault::TooManyCalls => protocol(message, ""),
                        Fault::Full(full) => full.into(),
                    }
                })?;
            }
            if let Some(reason) = choice.filled("finish_reason") {
                completion.take_finish_reason(reason);
            }
        }
        Ok(())
    }

    fn complete(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(mut completion) = self.completion.take() else {
            return Ok(());
        };
        completion.end_text(events);
        let response = completion.finish(&self.provider);
        let response = response.map_err(|_| protocol("a tool call has no name".to_owned(), ""))?;
        events.push(ModelEvent::Completed(Box::new(response)));
        Ok(())
    }
}

fn is_error_list(text: &str) -> bool {
    let first = wire::parse_list(text).and_then(|items| items.into_iter().next());
    first.and_then(wire::object).is_some_and(|first| first.has_error())
}
