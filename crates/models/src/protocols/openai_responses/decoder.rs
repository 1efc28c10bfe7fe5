//! Reads the events of a stream, and whole responses.

use std::borrow::Cow;
use std::sync::Arc;

use super::completion::{Completion, Target};
use super::failure::failure_of_response;
use super::message::Holds;
use super::partial_text::Fragment;
use super::reasoning::Section;
use crate::body::protocol;
use crate::decoder::{FrameReader, Progress, StreamDecoder, is_error, read_object};
use crate::ending::{finish_reason, reason_of};
use crate::errors::{error_in, error_of_frame};
use crate::fields::Fields;
use crate::openai_usage::{RESPONSES, read_usage};
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::{ModelError, ModelErrorClass, ModelEvent};
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::usage::Usage;

/// Decodes one completion.
pub(super) type ResponsesDecoder = StreamDecoder<ResponsesReader>;

/// Reads one response.
#[derive(Debug)]
pub(super) struct ResponsesReader {
    completion: Completion,
    has_begun: bool,
    reason: FinishReason,
    usage: Usage,
}

/// The text of an event: its target, and whether it is the whole text.
struct TextEvent {
    target: Target,
    field: &'static str,
    fragment: fn(String) -> Fragment,
}

impl FrameReader for ResponsesReader {
    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            completion: Completion::new(provider, ids, caps),
            has_begun: false,
            reason: FinishReason::Stop,
            usage: Usage::default(),
        }
    }

    fn error(name: &str, data: &str) -> Option<AttemptError> {
        is_error(name, data).then(|| error_of_frame(data))
    }

    fn take_frame(&mut self, name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let event = read_object(data)?;
        let kind = event.borrowed_filled("type").unwrap_or(Cow::Borrowed(name));
        if matches!(kind.as_ref(), "error" | "response.error") || (event.has_error() && !event.has("response")) {
            return Err(error_of_frame(data));
        }
        match kind.strip_prefix("response.") {
            Some(kind) => self.take_event(kind, &event, events),
            None => error_in(&event, data, !name.is_empty()).map_or(Ok(Progress::Open), Err),
        }
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let response = read_object(body)?;
        let is_response =
            response.borrowed_text("object").as_deref() == Some("response") || response.list("output").is_some();
        if !is_response {
            let error = error_in(&response, body, false);
            return Err(error.unwrap_or_else(|| protocol("the body is not a response".to_owned(), body)));
        }
        self.take_end(&response, "completed", events)
    }

    fn has_nothing(&self) -> bool {
        !self.has_begun
    }

    /// Returns false: the event with the status also has the whole response, so nothing is final
    /// before it.
    fn is_finished(&self) -> bool {
        false
    }

    fn has_open_parts(&self) -> bool {
        self.reason.is_whole() && self.completion.has_open_items()
    }

    fn finish(self, _events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        let response = self.completion.finish(self.reason, self.usage);
        response.map_err(|fault| fault.error(""))
    }
}

impl ResponsesReader {
    fn take_event(
        &mut self,
        kind: &str,
        event: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, AttemptError> {
        self.has_begun = true;
        let response = event.object("response").unwrap_or_default();
        let completion = &mut self.completion;
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
                Some((text, known)) => completion.take_text(event, known.target, (known.fragment)(text), events),
                // An event of a later protocol version.
                None => Ok(()),
            },
        };
        taken.map_err(|fault| fault.error(""))?;
        Ok(Progress::Open)
    }

    /// Reads the final response. `status` applies unless the response has its own status.
    fn take_end(
        &mut self,
        response: &Fields<'_>,
        status: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, AttemptError> {
        let status = reason_of(response, "status").unwrap_or_else(|| status.to_owned());
        let reason = match status.as_str() {
            status if status == "failed" || response.has_error() => Err(failure_of_response(response)),
            status if status == "incomplete" || incomplete_reason(response).is_some() => Ok(incomplete(response)),
            "queued" | "in_progress" => Err(deferred()),
            "cancelled" => Err(cancelled()),
            status => Ok(finish_reason(Some(status))),
        };
        let usage = read_usage(response, &RESPONSES);
        self.reason = reason.inspect_err(|_| events.extend(usage.map(ModelEvent::Usage)))?;
        self.usage = usage.unwrap_or_default();
        self.completion.take_envelope(response);
        let output = response.items("output");
        let taken = self.completion.take_list(&output, events);
        events.extend(usage.map(ModelEvent::Usage));
        taken.map_err(|fault| fault.error(""))?;
        Ok(Progress::Complete)
    }
}

fn text_event(kind: &str) -> Option<TextEvent> {
    let (position, field, fragment): (_, _, fn(String) -> Fragment) = match kind.rsplit_once('.')? {
        (position, "delta") => (position, "delta", Fragment::Piece),
        ("refusal", "done") => ("refusal", "refusal", Fragment::Whole),
        ("function_call_arguments", "done") => ("function_call_arguments", "arguments", Fragment::Whole),
        (position, "done") => (position, "text", Fragment::Whole),
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
        fragment,
    })
}

fn incomplete(response: &Fields<'_>) -> FinishReason {
    let reason = incomplete_reason(response);
    match finish_reason(Some(reason.as_deref().unwrap_or("incomplete"))) {
        // An incomplete response has not ended by itself.
        FinishReason::Stop | FinishReason::ToolCalls => FinishReason::Other("incomplete".to_owned()),
        reason => reason,
    }
}

fn incomplete_reason(response: &Fields<'_>) -> Option<String> {
    reason_of(&response.object("incomplete_details")?, "reason")
}

/// Makes the error of a response that is still in progress. The provider bills it, and a retry
/// would only start another one.
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
