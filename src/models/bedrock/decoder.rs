//! Decodes responses, as an event stream or one JSON body: bytes in, events out. No IO, and no
//! panic for any bytes.

use std::sync::Arc;

use super::completion::{Completion, Fault};
use super::frames::{Frame, Frames};
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::models::body::{Body, BodyEnd, broken_down, protocol, truncated};
use crate::models::calls::CallFault;
use crate::models::client::Decoder;
use crate::models::errors::error_of_frame;
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::wire::Fields;
use crate::usage::Usage;

/// Decodes one completion.
#[derive(Debug)]
pub struct ConverseDecoder {
    provider: String,
    caps: CapSettings,
    form: Form,
    received: usize,
    saw_message: bool,
    completion: Option<Completion>,
}

#[derive(Debug)]
enum Form {
    Unknown,
    Frames(Frames),
    Whole(Body),
}

impl ConverseDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// The first byte reveals the form: messages of less than 16 MiB begin with zero, JSON does
    /// not.
    pub fn new(provider: &str, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            form: Form::Unknown,
            received: 0,
            saw_message: false,
            completion: Some(Completion::new(ids, caps)),
        }
    }
}

impl Decoder for ConverseDecoder {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if let (Form::Unknown, Some(first)) = (&self.form, bytes.first()) {
            self.form = if first.is_ascii_control() && !first.is_ascii_whitespace() {
                Form::Frames(Frames::new(self.caps.event_bytes))
            } else {
                Form::Whole(Body::new(Some("application/json"), self.caps))
            };
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Whole(body) => body.push(bytes, &mut Vec::new()),
            Form::Frames(cutter) => {
                self.received = self.received.saturating_add(bytes.len());
                if self.received > self.caps.response_bytes {
                    let message = format!("the response is larger than {} bytes", self.caps.response_bytes);
                    return Err(protocol(message, ""));
                }
                let mut frames = Vec::new();
                let outcome = cutter.push(bytes, &mut frames);
                for frame in &frames {
                    self.take_frame(frame, events)?;
                }
                match outcome {
                    Err(fault) if !Decoder::is_done(self) => Err(protocol(fault.to_string(), "")),
                    _ => Ok(()),
                }
            }
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if self.is_done() {
            return Ok(());
        }
        let is_finished = self.is_finished();
        match &mut self.form {
            Form::Whole(body) => match body.end() {
                BodyEnd::Whole(body) => self.finish_whole(&body, events),
                BodyEnd::Events(_) => Err(protocol("the response is no AWS event stream".to_owned(), "")),
                BodyEnd::Empty => Err(truncated()),
            },
            Form::Frames(_) if is_finished => self.complete(events),
            Form::Frames(_) | Form::Unknown => Err(truncated()),
        }
    }

    fn is_done(&self) -> bool {
        self.completion.is_none()
    }

    fn is_finished(&self) -> bool {
        self.completion.as_ref().is_none_or(Completion::is_finished)
    }
}

impl ConverseDecoder {
    fn take_frame(&mut self, frame: &Frame, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        if frame.kind == "exception" || frame.kind == "error" {
            return Err(exception(&frame.name, &frame.data));
        }
        let event = Fields::parse(&frame.data)
            .ok_or_else(|| protocol("an event of the stream is not a JSON object".to_owned(), &frame.data))?;
        let index = event.count("contentBlockIndex");
        let outcome = match frame.name.as_str() {
            "contentBlockStart" => match event.get("start") {
                Some(start) => completion.begin(index, start, events),
                None => Ok(()),
            },
            "contentBlockDelta" => completion.add(index, &event.object("delta").unwrap_or_default(), events),
            "contentBlockStop" => {
                completion.end(index, events);
                Ok(())
            }
            "messageStop" => {
                completion.take_end(&event);
                Ok(())
            }
            "metadata" => {
                completion.take_usage(&event);
                // The last event of a stream.
                if completion.is_finished() {
                    return self.complete(events);
                }
                Ok(())
            }
            // `messageStart`, and events that later versions of the protocol may bring.
            _ => Ok(()),
        };
        self.saw_message = true;
        outcome.map_err(|fault| self.failure(fault, &frame.data))
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let whole: Fields<'_> = match serde_json::from_str(body) {
            Ok(whole) => whole,
            Err(error) if error.is_eof() => return Err(truncated()),
            Err(_) => return Err(protocol("the response is not a JSON object".to_owned(), body)),
        };
        let message = whole.object("output").and_then(|output| output.object("message"));
        let (Some(message), Some(completion)) = (message, &mut self.completion) else {
            let says = whole.has("message") || whole.has("error") || whole.has("__type");
            return Err(if says {
                error_of_frame(body)
            } else {
                protocol("the response has no message".to_owned(), body)
            });
        };
        let mut outcome = Ok(());
        for block in message.list("content").unwrap_or_default() {
            outcome = outcome.and_then(|()| completion.take_block(block, events));
        }
        completion.take_end(&whole);
        completion.take_usage(&whole);
        if let Err(fault) = outcome {
            events.extend(usage_event(completion.usage()));
            return Err(self.failure(fault, body));
        }
        self.complete(events)
    }

    fn complete(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(completion) = self.completion.take() else {
            return Ok(());
        };
        events.extend(usage_event(completion.usage()));
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
                let message = format!("the response has more than {} tool calls", self.caps.tool_calls);
                return protocol(message, "");
            }
            Fault::Full(full) => return full.into(),
            Fault::Call(CallFault::Nameless) => "a tool call has no name",
            Fault::StrayInput => "a piece of a tool call belongs to no call",
        };
        protocol(message.to_owned(), text)
    }
}

/// Returns the usage event, if the provider has reported usage.
fn usage_event(usage: Usage) -> Option<ModelEvent> {
    (usage != Usage::default()).then_some(ModelEvent::Usage(usage))
}

/// Returns the failure that an exception in the stream means, by its name and the status that it
/// would have had before it.
fn exception(name: &str, data: &str) -> AttemptError {
    let fields = Fields::parse(data);
    let text = |field: &str| fields.as_ref().and_then(|fields| fields.filled(field));
    let texts = [text("message"), text("originalMessage")].into_iter().flatten();
    let mut message = texts.collect::<Vec<_>>().join(": ");
    if message.is_empty() {
        let is_plain = fields.is_none() && !data.trim().is_empty();
        (if is_plain { data } else { name }).clone_into(&mut message);
    }
    let status = match name {
        "throttlingException" | "modelNotReadyException" => 429,
        "validationException" => 400,
        "accessDeniedException" => 403,
        "resourceNotFoundException" => 404,
        "modelTimeoutException" => 408,
        "serviceUnavailableException" => 503,
        // `internalServerException`, `modelStreamErrorException`, and later ones.
        _ => 500,
    };
    let body = serde_json::json!({"error": {"message": message, "type": name, "code": status}});
    error_of_frame(&body.to_string())
}
