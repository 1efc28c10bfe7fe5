//! Decodes responses, as server-sent events or one JSON body: bytes in, events out. No IO, and no
//! panic for any bytes.

use std::sync::Arc;

use super::answer::{Answer, Fault, Said, Target};
use super::failure::{failure_of_event, failure_of_response};
use super::message::Holds;
use super::reasoning::Section;
use super::usage::read_usage;
use crate::agent::ports::{ModelError, ModelErrorClass, ModelEvent};
use crate::agent::state::FinishReason;
use crate::ids::IdSource;
use crate::models::body::{Body, protocol, truncated};
use crate::models::framed::FrameDecoder;
use crate::models::retry::Failure;
use crate::models::settings::CapSettings;
use crate::models::sse::SseEvent;
use crate::models::wire::Fields;

/// Decodes one answer.
#[derive(Debug)]
pub struct ResponsesDecoder {
    provider: String,
    caps: CapSettings,
    body: Body,
    saw_frame: bool,
    saw_response: bool,
    answer: Option<Answer>,
}

/// Where the words of an event stand, and whether they are the whole.
struct WordsEvent {
    target: Target,
    field: &'static str,
    is_whole: bool,
}

impl ResponsesDecoder {
    /// Makes a decoder of an answer of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only: a body that looks otherwise is read as what it looks like.
    pub fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            provider: provider.to_owned(),
            caps,
            body: Body::new(content_type, caps),
            saw_frame: false,
            saw_response: false,
            answer: Some(Answer::new(ids, caps)),
        }
    }
}

impl FrameDecoder for ResponsesDecoder {
    fn body(&mut self) -> &mut Body {
        &mut self.body
    }

    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), Failure> {
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

    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        // Some servers forget the last blank line; a piece that was cut off is no JSON.
        if let Some(frame) = last.filter(|frame| Fields::parse(frame.data.trim()).is_some()) {
            self.take_frame(&frame, events)?;
        }
        if self.is_done() {
            Ok(())
        } else if self.saw_frame && !self.saw_response {
            Err(protocol("the stream holds no answer".to_owned(), ""))
        } else {
            Err(truncated())
        }
    }

    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        let response = read_object(body)?;
        let is_response =
            response.borrowed_text("object").as_deref() == Some("response") || response.list("output").is_some();
        if !is_response && response.is_error() {
            return Err(failure_of_event(body));
        }
        if !is_response {
            return Err(protocol("the answer is not a response".to_owned(), body));
        }
        self.take_end(&response, "completed", events)
    }

    fn is_done(&self) -> bool {
        self.answer.is_none()
    }

    fn is_finished(&self) -> bool {
        // The event that says how the answer ended has all of it.
        self.is_done()
    }
}

impl ResponsesDecoder {
    fn take_event(&mut self, kind: &str, event: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(());
        };
        self.saw_response = true;
        let response = event.object("response").unwrap_or_default();
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let taken = match kind {
            "created" | "queued" | "in_progress" => {
                answer.take_envelope(&response);
                Ok(())
            }
            "completed" | "incomplete" | "failed" | "cancelled" => return self.take_end(&response, kind, events),
            "done" => return self.take_end(&response, "completed", events),
            "output_item.added" => answer.take_item(event, false, events),
            "output_item.done" => answer.take_item(event, true, events),
            "content_part.done" | "output_text.annotation.added" => answer.take_part(event, events),
            _ => match words_event(kind).and_then(|known| Some((event.text(known.field)?, known))) {
                Some((text, known)) => {
                    let said = if known.is_whole { Said::Whole } else { Said::Piece };
                    answer.take_words(event, known.target, said(text), events)
                }
                // An event that came after this was written.
                None => Ok(()),
            },
        };
        taken.map_err(|fault| self.failure(&fault))
    }

    /// Takes the response that ends the answer; `status` is how, unless the response says otherwise.
    fn take_end(&mut self, response: &Fields<'_>, status: &str, events: &mut Vec<ModelEvent>) -> Result<(), Failure> {
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
        let Some(mut answer) = self.answer.take() else {
            return Ok(());
        };
        answer.take_envelope(response);
        let output = response.list("output").unwrap_or_default();
        let taken = answer.take_list(&output, events);
        events.extend(usage.map(ModelEvent::Usage));
        taken.map_err(|fault| self.failure(&fault))?;
        let response = answer.finish(&self.provider, reason, usage.unwrap_or_default());
        let response = response.map_err(|_| protocol("a tool call has no name".to_owned(), ""))?;
        events.push(ModelEvent::Completed(Box::new(response)));
        Ok(())
    }

    fn failure(&self, fault: &Fault) -> Failure {
        match fault {
            Fault::Full(full) => (*full).into(),
            Fault::TooManyCalls => {
                let most = self.caps.tool_calls;
                protocol(format!("the answer has more than {most} tool calls"), "")
            }
        }
    }
}

fn read_object(text: &str) -> Result<Fields<'_>, Failure> {
    match serde_json::from_str(text) {
        Ok(fields) => Ok(fields),
        Err(error) if error.is_eof() => Err(truncated()),
        Err(_) => Err(protocol("the answer is not a JSON object".to_owned(), text)),
    }
}

fn words_event(kind: &str) -> Option<WordsEvent> {
    let (place, field, is_whole) = match kind.rsplit_once('.')? {
        (place, "delta") => (place, "delta", false),
        ("refusal", "done") => ("refusal", "refusal", true),
        ("function_call_arguments", "done") => ("function_call_arguments", "arguments", true),
        (place, "done") => (place, "text", true),
        _ => return None,
    };
    let target = match place {
        "output_text" => Target::Message(Holds::Text),
        "refusal" => Target::Message(Holds::Refusal),
        "reasoning_summary_text" => Target::Reasoning(Section::Summary),
        "reasoning_text" => Target::Reasoning(Section::Content),
        "function_call_arguments" => Target::Arguments,
        _ => return None,
    };
    Some(WordsEvent {
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

/// The provider still works on the answer, and is paid for it: another attempt would only be another one of these.
fn deferred() -> Failure {
    protocol(
        "the provider answers in the background, and such answers are not fetched".to_owned(),
        "",
    )
}

fn cancelled() -> Failure {
    Failure::judged(ModelError::new(
        ModelErrorClass::Server,
        "the provider cancelled its answer",
    ))
}
