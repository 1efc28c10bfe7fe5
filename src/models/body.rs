//! Splits the bytes of a response into frames, for server-sent events and for one JSON body. No IO,
//! and no protocol's JSON.

use std::mem;

use super::retry::AttemptError;
use super::settings::CapSettings;
use super::sse::{SseDecoder, SseEvent};
use crate::agent::ports::{ModelError, ModelErrorClass};

/// The mark that some servers put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The most characters of a broken response that are retained for the operator.
const KEPT_CHARS: usize = 1_000;

/// The bytes of one response.
#[derive(Debug)]
pub(super) struct Body {
    caps: CapSettings,
    declared_stream: bool,
    form: Form,
    received: usize,
}

#[derive(Debug)]
enum Form {
    Unknown(Vec<u8>),
    Events(Box<SseDecoder>),
    Whole(Vec<u8>),
}

/// What is left at the end of a response's bytes.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// Nothing came at all.
    Empty,
    /// The stream ended, perhaps with an event that no blank line ended.
    Events(Option<SseEvent>),
    /// The one body, without the mark and the space around it. Bytes that are not UTF-8 became
    /// U+FFFD.
    Whole(String),
}

impl Body {
    /// Makes the reader of a response.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub(super) fn new(content_type: Option<&str>, caps: CapSettings) -> Self {
        Self {
            caps,
            declared_stream: content_type.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream")),
            form: Form::Unknown(Vec::new()),
            received: 0,
        }
    }

    /// Takes the next bytes and appends the frames that they complete, also when it fails.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<SseEvent>) -> Result<(), AttemptError> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > self.caps.response_bytes {
            return Err(protocol(
                format!("the response is larger than {} bytes", self.caps.response_bytes),
                "",
            ));
        }
        match &mut self.form {
            Form::Whole(body) => body.extend_from_slice(bytes),
            Form::Events(decoder) => return push_events(decoder, bytes, frames),
            Form::Unknown(start) => {
                start.extend_from_slice(bytes);
                if MARK.starts_with(start) {
                    return Ok(());
                }
                let text = start.strip_prefix(MARK).unwrap_or(start).trim_ascii_start();
                let Some(first) = text.first().copied() else {
                    return Ok(());
                };
                let start = mem::take(start);
                if is_stream(first, self.declared_stream) {
                    let mut decoder = Box::new(SseDecoder::new(self.caps.event_bytes));
                    let outcome = push_events(&mut decoder, &start, frames);
                    self.form = Form::Events(decoder);
                    return outcome;
                }
                self.form = Form::Whole(start);
            }
        }
        Ok(())
    }

    /// Takes the end of the bytes.
    pub(super) fn end(&mut self) -> BodyEnd {
        match mem::replace(&mut self.form, Form::Unknown(Vec::new())) {
            Form::Unknown(_) => BodyEnd::Empty,
            Form::Events(decoder) => BodyEnd::Events(decoder.finish()),
            Form::Whole(body) => {
                let text = String::from_utf8_lossy(&body);
                BodyEnd::Whole(text.trim_start_matches('\u{FEFF}').trim().to_owned())
            }
        }
    }
}

fn push_events(decoder: &mut SseDecoder, bytes: &[u8], frames: &mut Vec<SseEvent>) -> Result<(), AttemptError> {
    let outcome = decoder.push(bytes, frames);
    outcome.map_err(|error| protocol(error.to_string(), ""))
}

fn is_stream(first: u8, declared: bool) -> bool {
    // No line of a stream of events begins with a bracket; each known one begins with a colon or a
    // field's name.
    !matches!(first, b'{' | b'[') && (declared || matches!(first, b':' | b'd' | b'e' | b'i' | b'r'))
}

/// Returns the error for a response that ended too early.
pub(super) fn truncated() -> AttemptError {
    AttemptError::judged(ModelError::new(
        ModelErrorClass::Truncated,
        "the response ended before it was complete",
    ))
}

/// Returns the error for a completion that the model itself has spoilt. Models do that now and
/// then, for any request: another attempt may succeed.
pub(super) fn broken_down(message: String) -> AttemptError {
    AttemptError {
        error: ModelError::new(ModelErrorClass::Protocol, message),
        retryable: true,
    }
}

/// Returns the error for a response that violates its protocol. The beginning of `body` is retained
/// for the operator.
pub(super) fn protocol(message: String, body: &str) -> AttemptError {
    let body = body.chars().filter(|c| *c != '\0').take(KEPT_CHARS).collect::<String>();
    AttemptError::permanent(ModelError {
        body: Some(body).filter(|body| !body.is_empty()),
        ..ModelError::new(ModelErrorClass::Protocol, message)
    })
}
