//! Decodes responses, as server-sent events or one JSON body: bytes in, events out. No IO, and no
//! panic for any bytes.

use std::sync::Arc;

use super::completion::{Completion, Fault, Fragment, Target};
use super::failure::{failure_of_event, failure_of_response};
use super::message::Holds;
use super::reasoning::Section;
use super::usage::read_usage;
use crate::agent::ports::{ModelError, ModelErrorClass, ModelEvent};
use crate::agent::state::FinishReason;
use crate::ids::IdSource;
use crate::models::body::{Body, protocol, truncated};
use crate::models::framed::FrameDecoder;
use crate::models::retry::AttemptError;
use crate::models::settings::CapSettings;
use crate::models::sse::SseEvent;
use crate::models::wire::Fields;

/// Decodes one completion.
#[derive(Debug)]
pub struct ResponsesDecoder {
    provider: String,
    caps: CapSettings,
    body: Body,
    saw_frame: bool,
    saw_response: bool,
    completion: Option<Completion>,
}

/// Where the text of an event belongs, and whether it is the whole text.
struct TextEvent {
    target: Target,
    field: &'static str,
    is_whole: bool,
}

impl ResponsesDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            body: Body::new(content_type, caps),
            saw_frame: false,
            saw_response: false,
            completion: Some(Completion::new(ids, caps)),
        }
    }
}

impl FrameDecoder for ResponsesDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let data = frame.data.trim();
        if self.is_done() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if frame.name == "error" {
            return Err(failure_of_event(data));
        }
        self.saw_frame = true;
        let event = read_object(data)?;
        let kind = event.filled("type").unwrap_or_else(|| frame.name.clone());
        if matches!(kind.as_str(), "error" | "response.error") || (event.has_error() && !event.has("response")) {
            return Err(failure_of_event(data));
        }
        self.take_event(&kind, &event, events)
    }

    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        // Some servers forget the last blank line; a piece that was cut off is no JSON.
        if let Some(frame) = last.filter(|frame| Fields::parse(frame.data.trim()).is_some()) {
            self.take_frame(&frame, events)?;
        }
        if self.is_done() {
            Ok(())
        } else if self.saw_frame && !self.saw_response {
            Err(protocol("the stream has no completion".to_owned(), ""))
        } else {
            Err(truncated())
        }
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let response = read_object(body)?;
        let is_response =
            response.borrowed_text("object").as_deref() == Some("response") || response.list("output").is_some();
        if !is_response && response.is_error() {
            return Err(failure_of_event(body));
        }
        if !is_response {
            return Err(protocol("the body is not a response".to_owned(), body));
        }
        self.take_end(&response, "completed", events)
    }

    fn is_done(&self) -> bool {
        self.completion.is_none()
    }

    fn is_finished(&self) -> bool {
        // The event with the status of the response has the whole response.
        self.is_done()
    }
}

impl ResponsesDecoder {
    fn take_event(&mut self, kind: &str, event: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(());
        };
        self.saw_response = true;
        let response = event.object("response").unwrap_or_default();
        let Some(completion) = &mut self.completion else {
            return Ok(());
        };
        let taken = match kind {
            "created" | "queued" | "in_progress" => {
                completion.take_envelope(&response);
                Ok(())
            }
            "completed" | "incomplete" | "failed" | "cancelled" => return self.take_end(&response, kind, events),
            "done" => return self.take_end(&response, "completed", events),
            "output_item.added" => completion.take_item(event, false, events),
            "output_item.done" => completion.take_item(event, true, events),
            "content_part.done" | "output_text.annotation.added" => completion.take_part(event, events),
            _ => match text_event(kind).and_then(|known| Some((event.text(known.field)?, known))) {
                Some((text, known)) => {
                    let fragment = if known.is_whole {
                        Fragment::Whole
                    } else {
                        Fragment::Piece
                    };
                    completion.take_text(event, known.target, fragment(text), events)
                }
                // An event that came after this was written.
                None => Ok(()),
            },
        };
        taken.map_err(|fault| self.failure(&fault))
    }

    /// Takes the final response. `status` counts unless the response has its own.
    fn take_end(
        &mut self,
        response: &Fields<'_>,
        status: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), AttemptError> {
        let status = response.filled("status").unwrap_or_else(|| status.to_owned());
        let reason = match status.as_str() {
            status if status == "failed" || response.has_error() => Err(failure_of_response(response)),
            "completed" => Ok(None),
            "incomplete" => Ok(Some(incomplete(response))),
            "queued" | "in_progress" => Err(deferred()),
            "cancelled" => Err(cancelled()),
            _ => Ok(Some(FinishReason::Other(status))),
        };
        let usage = read_usage(response);
        let reason = reason.inspect_err(|_| events.extend(usage.map(ModelEvent::Usage)))?;
        let Some(mut completion) = self.completion.take() else {
            return Ok(());
        };
        completion.take_envelope(response);
        let output = response.list("output").unwrap_or_default();
        let taken = completion.take_list(&output, events);
        events.extend(usage.map(ModelEvent::Usage));
        taken.map_err(|fault| self.failure(&fault))?;
        let response = completion.finish(&self.provider, reason, usage.unwrap_or_default());
        let response = response.map_err(|_| protocol("a tool call has no name".to_owned(), ""))?;
        events.push(ModelEvent::Completed(Box::new(response)));
        Ok(())
    }

    fn failure(&self, fault: &Fault) -> AttemptError {
        match fault {
            Fault::Full(full) => (*full).into(),
            Fault::TooManyCalls => {
                let most = self.caps.tool_calls;
                protocol(format!("the response has more than {most} tool calls"), "")
            }
        }
    }
}

fn read_object(text: &str) -> Result<Fields<'_>, AttemptError> {
    match serde_json::from_str(text) {
        Ok(fields) => Ok(fields),
        Err(error) if error.is_eof() => Err(truncated()),
        Err(_) => Err(protocol("the response is not a JSON object".to_owned(), text)),
    }
}

fn text_event(kind: &str) -> Option<TextEvent> {
    let (position, field, is_whole) = match kind.rsplit_once('.')? {
        (position, "delta") => (position, "delta", false),
        ("refusal", "done") => ("refusal", "refusal", true),
        ("function_call_arguments", "done") => ("function_call_arguments", "arguments", true),
        (position, "done") => (position, "text", true),
        _ => return None,
    };
    let target = match position {
        "output_text" => Target::Message(Holds::Text),
        "refusal" => Target::Message(Holds::Refusal),
        "reasoning_summary_text" => Target::Reasoning(Section::Summary),
        "reasoning_text" => Target::Reasoning(Section::Content),
        "function_call_arguments" => Target::Arguments,
        _ => return None,
    };
    Some(TextEvent {
        target,
        field,
        is_whole,
    })
}

fn incomplete(response: &Fields<'_>) -> FinishReason {
    let details = response.object("incomplete_details");
    match details.and_then(|details| details.filled("reason")).as_deref() {
        Some("max_output_tokens" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some(reason) => FinishReason::Other(reason.to_owned()),
        None => FinishReason::Other("incomplete".to_owned()),
    }
}

/// The provider still works on the response and bills it. A retry would only start another one.
fn deferred() -> AttemptError {
    protocol(
        "the provider responds in the background, which is not supported".to_owned(),
        "",
    )
}

fn cancelled() -> AttemptError {
    AttemptError::judged(ModelError::new(
        ModelErrorClass::Server,
        "the provider cancelled its response",
    ))
}
