//! Splits the bytes of a response into frames: server-sent events, a protocol's own stream, or one
//! JSON body. No IO, and no protocol's JSON.

use std::borrow::Cow;
use std::fmt::Debug;
use std::mem;

use super::retry::AttemptError;
use super::settings::CapSettings;
use super::sse::{Frame, SseDecoder};
use agent::ports::{ModelError, ModelErrorClass};

/// The byte order mark that some servers put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The most characters of a broken response that are retained for the operator.
const RETAINED_CHARS: usize = 1_000;

/// Splits the bytes of a stream into frames, piece by piece.
pub(super) trait Splitter: Debug + Send {
    /// Reads the next bytes up to the end of a frame, and removes them from `bytes`. `None`: the
    /// frame goes on in the bytes after these.
    fn next_frame(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AttemptError>;

    /// Ends the stream. Returns the last frame if nothing but the end of the stream ended it.
    fn last_frame(&mut self) -> Option<Frame<'_>>;
}

/// Makes the splitter of a stream that begins with a byte, for frames of at most that many bytes;
/// `None` if the byte begins a JSON body.
pub(super) type Detect = fn(first: u8, limit: usize) -> Option<Box<dyn Splitter>>;

/// The bytes of one response.
#[derive(Debug)]
pub(super) struct Body {
    caps: CapSettings,
    detect: Detect,
    form: Form,
    received: usize,
}

#[derive(Debug)]
enum Form {
    Unknown(Vec<u8>),
    Stream(Box<dyn Splitter>),
    Whole(Vec<u8>),
}

/// The rest at the end of a response's bytes.
#[derive(Debug)]
pub(super) enum BodyEnd<'a> {
    /// No byte arrived.
    Empty,
    /// The stream ended, perhaps with an event that no blank line ended.
    Events(Option<Frame<'a>>),
    /// The body. Bytes that are not UTF-8 became U+FFFD.
    Whole(Cow<'a, str>),
}

impl Body {
    /// Makes the reader of a response.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub(super) fn new(content_type: Option<&str>, caps: CapSettings) -> Self {
        let is_declared = content_type.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let detect: Detect = if is_declared {
            |first, limit| events(first, true, limit)
        } else {
            |first, limit| events(first, false, limit)
        };
        Self::detected_by(detect, caps)
    }

    /// Makes the reader of a response whose first byte after blanks determines its form.
    pub(super) fn detected_by(detect: Detect, caps: CapSettings) -> Self {
        Self {
            caps,
            detect,
            form: Form::Unknown(Vec::new()),
            received: 0,
        }
    }

    /// Takes note of the number of the next bytes, which must not be too many.
    pub(super) fn receive(&mut self, count: usize) -> Result<(), AttemptError> {
        self.received = self.received.saturating_add(count);
        if self.received > self.caps.response_bytes {
            return Err(protocol(
                format!("the response is larger than {} bytes", self.caps.response_bytes),
                "",
            ));
        }
        Ok(())
    }

    /// Reads the next frame, and removes its bytes from `bytes`. `None`: the frame goes on in the
    /// bytes after these.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AttemptError> {
        if let Form::Unknown(start) = &mut self.form
            && let Some(first) = first_byte(start, bytes)
        {
            let start = mem::take(start);
            self.form = self.form_of(first);
            // The start has only blanks, so no frame.
            self.read(&mut start.as_slice())?;
        }
        self.read(bytes)
    }

    /// Takes the end of the bytes.
    pub(super) fn end(&mut self) -> BodyEnd<'_> {
        match &mut self.form {
            Form::Unknown(_) => BodyEnd::Empty,
            Form::Stream(splitter) => BodyEnd::Events(splitter.last_frame()),
            Form::Whole(body) => BodyEnd::Whole(String::from_utf8_lossy(body)),
        }
    }

    fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AttemptError> {
        match &mut self.form {
            Form::Unknown(body) | Form::Whole(body) => {
                body.extend_from_slice(mem::take(bytes));
                Ok(None)
            }
            Form::Stream(splitter) => splitter.next_frame(bytes),
        }
    }

    /// Returns the form of a body that begins with this byte.
    fn form_of(&self, first: u8) -> Form {
        match (self.detect)(first, self.caps.event_bytes) {
            Some(splitter) => Form::Stream(splitter),
            None => Form::Whole(Vec::new()),
        }
    }
}

impl Splitter for SseDecoder {
    fn next_frame(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AttemptError> {
        self.next(bytes).map_err(|error| protocol(error.to_string(), ""))
    }

    fn last_frame(&mut self) -> Option<Frame<'_>> {
        self.finish()
    }
}

/// Returns the first byte of a body after the byte order mark and blanks; `None` if it has not
/// arrived. `start` has the bytes that arrived earlier: some of the mark, or the mark and blanks.
fn first_byte(start: &[u8], bytes: &[u8]) -> Option<u8> {
    let mark = MARK.strip_prefix(start).unwrap_or_default();
    if mark.starts_with(bytes) {
        return None;
    }
    match bytes.strip_prefix(mark) {
        None if !start.is_empty() => start.first(),
        text => text.unwrap_or(bytes).trim_ascii_start().first(),
    }
    .copied()
}

/// Makes the splitter of server-sent events, if a body that begins with this byte has them.
fn events(first: u8, is_declared: bool, limit: usize) -> Option<Box<dyn Splitter>> {
    is_stream(first, is_declared).then(|| -> Box<dyn Splitter> { Box::new(SseDecoder::new(limit)) })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, size: usize) -> (Body, Vec<String>) {
        let mut body = Body::new(None, CapSettings::default());
        let mut frames = Vec::new();
        for mut bytes in text.as_bytes().chunks(size) {
            body.receive(bytes.len()).unwrap();
            while let Some(frame) = body.next(&mut bytes).unwrap() {
                frames.push(frame.data.into_owned());
            }
            assert!(bytes.is_empty());
        }
        (body, frames)
    }

    #[test]
    fn the_form_is_found_after_a_mark_and_blanks_however_they_are_cut() {
        for start in ["", "\u{FEFF}", "\n \r\n", "\u{FEFF}\n\n"] {
            let (events, whole) = (format!("{start}data: x\n\n"), format!("{start}[1]"));
            for size in 1..=events.len() {
                let (mut body, frames) = filled(&events, size);
                assert_eq!(frames, ["x"], "{start:?} in pieces of {size}");
                assert!(matches!(body.end(), BodyEnd::Events(None)));
                let (mut body, frames) = filled(&whole, size);
                assert!(matches!(body.end(), BodyEnd::Whole(body) if body == whole) && frames.is_empty());
                let (mut body, _) = filled(start, size);
                assert!(matches!(body.end(), BodyEnd::Empty));
            }
        }
        // The first byte of a mark alone is no mark.
        let (mut body, _) = filled("\u{FE00}data: x\n\n", 1);
        assert!(matches!(body.end(), BodyEnd::Whole(_)));
    }
}
