//! Splits the bytes of a response into frames: server-sent events, an event stream of AWS, or one
//! JSON body. No IO, and no protocol's JSON.

use std::fmt::Display;
use std::mem;

use super::aws_events::AwsEvents;
use super::retry::AttemptError;
use super::settings::CapSettings;
use super::sse::{Frame, SseDecoder};
use crate::agent::ports::{ModelError, ModelErrorClass};

/// The byte order mark that some servers put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The most characters of a broken response that are retained for the operator.
const RETAINED_CHARS: usize = 1_000;

/// The bytes of one response.
#[derive(Debug)]
pub(super) struct Body {
    caps: CapSettings,
    declared: Declared,
    form: Form,
    received: usize,
}

/// The expected form of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    Events,
    AwsEvents,
    Other,
}

#[derive(Debug)]
enum Form {
    Unknown(Vec<u8>),
    Events(Box<SseDecoder>),
    AwsEvents(AwsEvents),
    Whole(Vec<u8>),
}

/// The rest at the end of a response's bytes.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// No byte arrived.
    Empty,
    /// The stream ended, perhaps with an event that no blank line ended.
    Events(Option<Frame>),
    /// The body, without the byte order mark and surrounding whitespace. Bytes that are not UTF-8
    /// became U+FFFD.
    Whole(String),
}

impl Body {
    /// Makes the reader of a response.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub(super) fn new(content_type: Option<&str>, caps: CapSettings) -> Self {
        let is_stream = content_type.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let declared = if is_stream { Declared::Events } else { Declared::Other };
        Self {
            caps,
            declared,
            form: Form::Unknown(Vec::new()),
            received: 0,
        }
    }

    /// Makes the reader of an AWS response: an event stream or one JSON body.
    ///
    /// The first byte determines the form: a message of less than 16 MiB begins with zero, and JSON
    /// does not.
    pub(super) fn of_aws(caps: CapSettings) -> Self {
        Self {
            declared: Declared::AwsEvents,
            ..Self::new(None, caps)
        }
    }

    /// Takes the next bytes, and appends the completed frames, even if it fails.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), AttemptError> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > self.caps.response_bytes {
            return Err(protocol(
                format!("the response is larger than {} bytes", self.caps.response_bytes),
                "",
            ));
        }
        self.add(bytes, frames)
    }

    /// Takes the end of the bytes.
    pub(super) fn end(&mut self) -> BodyEnd {
        match mem::replace(&mut self.form, Form::Unknown(Vec::new())) {
            Form::Unknown(_) => BodyEnd::Empty,
            Form::Events(decoder) => BodyEnd::Events(decoder.finish()),
            Form::AwsEvents(_) => BodyEnd::Events(None),
            Form::Whole(body) => {
                let text = String::from_utf8_lossy(&body);
                BodyEnd::Whole(text.trim_start_matches('\u{FEFF}').trim().to_owned())
            }
        }
    }

    fn add(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), AttemptError> {
        let start = match &mut self.form {
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                return Ok(());
            }
            Form::Events(decoder) => return readable(decoder.push(bytes, frames)),
            Form::AwsEvents(decoder) => return readable(decoder.push(bytes, frames)),
            Form::Unknown(start) => start,
        };
        start.extend_from_slice(bytes);
        if MARK.starts_with(start) {
            return Ok(());
        }
        let text = start.strip_prefix(MARK).unwrap_or(start).trim_ascii_start();
        let Some(first) = text.first().copied() else {
            return Ok(());
        };
        let start = mem::take(start);
        let limit = self.caps.event_bytes;
        self.form = match self.declared {
            Declared::AwsEvents if first.is_ascii_control() => Form::AwsEvents(AwsEvents::new(limit)),
            Declared::Events | Declared::Other if is_stream(first, self.declared == Declared::Events) => {
                Form::Events(Box::new(SseDecoder::new(limit)))
            }
            _ => {
                self.form = Form::Whole(start);
                return Ok(());
            }
        };
        self.add(&start, frames)
    }
}

fn readable<E: Display>(outcome: Result<(), E>) -> Result<(), AttemptError> {
    outcome.map_err(|error| protocol(error.to_string(), ""))
}

/// Returns whether a body that begins with this byte is an event stream. A line of a stream never
/// begins with a bracket; known lines begin with a colon or a field's name.
fn is_stream(first: u8, is_declared: bool) -> bool {
    !matches!(first, b'{' | b'[') && (is_declared || matches!(first, b':' | b'd' | b'e' | b'i' | b'r'))
}

/// Returns the error for a response that ended too early.
pub(super) fn truncated() -> AttemptError {
    AttemptError::judged(ModelError::new(
        ModelErrorClass::Truncated,
        "the response ended before it was complete",
    ))
}

/// Returns the error for a completion that the model itself made invalid. This happens occasionally
/// with any request, so another attempt may succeed.
pub(super) fn broken_down(message: String) -> AttemptError {
    AttemptError {
        error: ModelError::new(ModelErrorClass::Protocol, message),
        retryable: true,
    }
}

/// Returns the error for a response that violates its protocol. The beginning of `body` is retained
/// for the operator.
pub(super) fn protocol(message: String, body: &str) -> AttemptError {
    let body = body
        .chars()
        .filter(|c| *c != '\0')
        .take(RETAINED_CHARS)
        .collect::<String>();
    AttemptError::permanent(ModelError {
        body: Some(body).filter(|body| !body.is_empty()),
        ..ModelError::new(ModelErrorClass::Protocol, message)
    })
}
