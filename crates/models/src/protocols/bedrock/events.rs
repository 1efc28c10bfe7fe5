//! Splits `application/vnd.amazon.eventstream` into frames, in linear time and bounded memory.
//! Exceptions and errors become frames of their own name, whose data is a JSON error. AWS's own
//! crate parses the messages and checks their checksums. No IO.

use std::borrow::Cow;
use std::fmt::Display;
use std::mem;

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use aws_smithy_types::str_bytes::StrBytes;
use bytes::{Buf as _, BytesMut};

use crate::body::{Splitter, protocol};
use crate::fields::Fields;
use crate::retry::AttemptError;
use crate::sse::Frame;

/// The name of the frames of exceptions and errors; no event has it.
pub(super) const EXCEPTION: &str = ":exception";

/// The bytes of the length of a message.
const LENGTH_BYTES: usize = 4;
/// The shortest message: a prelude and two checksums around nothing.
const LEAST_BYTES: usize = 16;

/// Splits a stream piece by piece.
#[derive(Debug)]
pub(super) struct AwsEvents {
    limit: usize,
    buffer: BytesMut,
    /// The message of the last frame.
    message: Option<Message>,
}

impl AwsEvents {
    /// Makes the splitter of a body that begins with this byte, for messages of at most `limit`
    /// bytes; `None` for a JSON body. A message of less than 16 MiB begins with zero, and JSON does
    /// not.
    pub(super) fn detect(first: u8, limit: usize) -> Option<Box<dyn Splitter>> {
        first.is_ascii_control().then(|| -> Box<dyn Splitter> {
            Box::new(Self {
                limit,
                buffer: BytesMut::new(),
                message: None,
            })
        })
    }
}

impl Splitter for AwsEvents {
    fn next_frame(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AttemptError> {
        self.message = None;
        self.buffer.extend_from_slice(mem::take(bytes));
        if self.buffer.len() < LENGTH_BYTES {
            return Ok(None);
        }
        let length = self.buffer.chunk().get_u32() as usize;
        if length > self.limit {
            let message = format!("a message of the event stream is larger than {} bytes", self.limit);
            return Err(protocol(message, ""));
        }
        if length < LEAST_BYTES {
            return Err(damaged(format_args!("a message of {length} bytes")));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let message = read_message_from(&self.buffer[..length]);
        self.buffer.advance(length);
        Ok(Some(frame(self.message.insert(message.map_err(damaged)?))))
    }

    /// Returns `None`: a message has its own length.
    fn last_frame(&mut self) -> Option<Frame<'_>> {
        None
    }
}

/// Returns the error for bytes with a wrong length, a wrong checksum or unreadable headers.
fn damaged(reason: impl Display) -> AttemptError {
    protocol(format!("the event stream is damaged: {reason}"), "")
}

fn frame(message: &Message) -> Frame<'_> {
    let header = |name: &str| {
        let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
        header.value().as_string().ok().map(StrBytes::as_str)
    };
    let name = [":event-type", ":exception-type", ":error-code"]
        .into_iter()
        .find_map(header)
        .unwrap_or_default();
    let data = match header(":error-message") {
        Some(text) => Cow::Borrowed(text),
        None => String::from_utf8_lossy(message.payload()),
    };
    if matches!(header(":message-type"), Some("exception" | "error")) {
        return error_frame(name, &data);
    }
    Frame {
        name: name.into(),
        data,
    }
}

/// Returns the frame of an exception or an error, with its name and the status that corresponds to
/// it.
fn error_frame(name: &str, data: &str) -> Frame<'static> {
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
    Frame {
        name: EXCEPTION.into(),
        data: body.to_string().into(),
    }
}
