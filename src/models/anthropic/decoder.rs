//! Decodes responses, as server-sent events or one JSON body: bytes in, events out. No IO, and no
//! panic for any bytes.

use std::sync::Arc;

use super::completion::{Completion, Fault};
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::models::body::{Body, protocol, truncated};
use crate::models::calls::CallFault;
use crate::models::errors::error_of_frame;
use crate::models::framed::FrameDecoder;
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::sse::SseEvent;
use crate::models::wire::Fields;

/// Decodes one completion.
#[derive(Debug)]
pub struct MessagesDecoder {
    provider: String,
    caps: CapSettings,
    body: Body,
    saw_frame: bool,
    saw_message: bool,
    completion: Option<Completion>,
}

impl MessagesDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            body: Body::new(content_type, caps),
            saw_frame: false,
            saw_message: false,
            completion: Some(Completion::new(ids, caps)),
        }
    }
}

impl FrameDecoder for MessagesDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let data = frame.data.trim();
        // The mark that ends other protocols' streams; gateways add it.
        if self.is_done() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if frame.name == "error" {
            return Err(error_of_frame(data));
        }
        self.saw_frame = true;
        let event = read_object(data)?;
        if event.is_error() {
            return Err(error_of_frame(data));
        }
        let kind = event.filled("type").unwrap_or_else(|| frame.name.clone());
        self.take_event(&kind, &event, data, events)
    }

    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        // Some servers forget the last blank line; a piece that was cut off is no JSON.
        if let Some(frame) = last.filter(|frame| Fields::parse(frame.data.trim()).is_some()) {
            self.take_frame(&frame, events)?;
        }
        if self.is_finished() {
            self.complete(events);
            return Ok(());
        }
        if self.saw_frame && !self.saw_message {
            return Err(protocol("the stream has no message".to_owned(), ""));
        }
        Err(truncated())
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let message = read_object(body)?;
        if message.is_error() {
            return Err(error_of_frame(body));
        }
        self.take_message(&message, body, events)?;
        self.complete(events);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.completion.is_none()
    }

    fn is_finished(&self) -> bool {
        self.completion.as_ref().is_none_or(Completion::is_finished)
    }
}

impl MessagesDecoder {
    fn take_event(
        &mut self,
        kind: &str,
        event: &Fields<'_>,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        let index = event.count("index");
        let outcome = match kind {
            "message_start" => {
                let message = event.object("message").unwrap_or_default();
                completion.take_envelope(&message);
                Ok(())
            }
            "content_block_start" => match event.get("content_block") {
                Some(block) => completion.begin(index, block, events),
                None => Ok(()),
            },
            "content_block_delta" => {
                let delta = event.object("delta").unwrap_or_default();
                completion.add(index, &delta, events)
            }
            "content_block_stop" => {
                completion.end(index, events);
                Ok(())
            }
            "message_delta" => {
                completion.take_end(&event.object("delta").unwrap_or_default());
                completion.take_usage(event);
                Ok(())
            }
            "message_stop" if !self.saw_message => {
                return Err(protocol("the stream has no message".to_owned(), text));
            }
            "message_stop" => {
                self.complete(events);
                return Ok(());
            }
            // A server that sends the whole message at once.
            "message" => return self.take_message(event, text, events),
            // Pings, and events that later versions of the protocol may bring.
            _ => return Ok(()),
        };
        self.saw_message = true;
        events.extend(completion.changed_usage().map(ModelEvent::Usage));
        outcome.map_err(|fault| self.failure(&fault, text))
    }

    fn take_message(
        &mut self,
        message: &Fields<'_>,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let is_message = message.borrowed_text("type").as_deref() == Some("message") && message.has("content");
        let words = message.text("content").filter(|_| is_message);
        let blocks = match message.list("content") {
            Some(blocks) => blocks,
            None if is_message => Vec::new(),
            None => return Err(protocol("the response is not a message".to_owned(), text)),
        };
        self.saw_message = true;
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        let mut outcome = Ok(());
        // Some gateways send the text alone, and nothing if there is none.
        if let Some(words) = words {
            outcome = completion.say(words, events);
        }
        for block in blocks {
            outcome = outcome.and_then(|()| completion.begin(None, block, events));
            completion.end(None, events);
        }
        completion.take_envelope(message);
        events.extend(completion.changed_usage().map(ModelEvent::Usage));
        outcome.map_err(|fault| self.failure(&fault, text))
    }

    fn complete(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(mut completion) = self.completion.take() {
            events.extend(completion.changed_usage().map(ModelEvent::Usage));
            let response = completion.finish(&self.provider, events);
            events.push(ModelEvent::Completed(Box::new(response)));
        }
    }

    fn failure(&self, fault: &Fault, text: &str) -> AttemptError {
        let message = match fault {
            Fault::Call(CallFault::TooMany) => {
                return protocol(
                    format!("the response has more than {} tool calls", self.caps.tool_calls),
                    "",
                );
            }
            Fault::Full(full) => return (*full).into(),
            Fault::Call(CallFault::Nameless) => "a tool call has no name",
            Fault::StrayInput => "a piece of a tool call belongs to no call",
        };
        protocol(message.to_owned(), text)
    }
}

fn read_object(text: &str) -> Result<Fields<'_>, AttemptError> {
    match serde_json::from_str(text) {
        Ok(fields) => Ok(fields),
        Err(error) if error.is_eof() => Err(truncated()),
        Err(_) => Err(protocol("the response is not a JSON object".to_owned(), text)),
    }
}
