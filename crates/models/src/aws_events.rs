//! Splits `application/vnd.amazon.eventstream` into frames, in linear time and bounded memory.
//! Exceptions and errors become frames of their own name, whose data is a JSON error. AWS's own
//! crate parses the messages and checks their checksums. No IO.

use std::borrow::Cow;
use std::mem;

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use aws_smithy_types::str_bytes::StrBytes;
use bytes::{Buf as _, BytesMut};

use super::fields::Fields;
use super::sse::Frame;

/// The name of the frames of exceptions and errors; no event has it.
pub(super) const EXCEPTION: &str = ":exception";

/// The bytes of the length of a message.
const LENGTH_BYTES: usize = 4;
/// The shortest message: a prelude and two checksums around nothing.
const LEAST_BYTES: usize = 16;

/// The error of bytes that are not messages.
#[derive(Debug, thiserror::Error)]
pub(super) enum AwsEventsError {
    /// A message is larger than it may be.
    #[error("a message of the event stream is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes that a message may have.
        limit: usize,
    },
    /// A message has a wrong length, a wrong checksum or headers that can't be read.
    #[error("the event stream is damaged: {0}")]
    Damaged(String),
}

/// Splits a stream piece by piece.
#[derive(Debug)]
pub(super) struct AwsEvents {
    limit: usize,
    buffer: BytesMut,
    /// The message of the last frame.
    message: Option<Message>,
}

impl AwsEvents {
    /// Makes a splitter for messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            message: None,
        }
    }

    /// Reads the next bytes up to the end of a message, and removes them from `bytes`. `None`: the
    /// message goes on in the bytes after these.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, AwsEventsError> {
        self.message = None;
        self.buffer.extend_from_slice(mem::take(bytes));
        if self.buffer.len() < LENGTH_BYTES {
            return Ok(None);
        }
        let length = self.buffer.chunk().get_u32() as usize;
        if length > self.limit {
            return Err(AwsEventsError::TooLarge { limit: self.limit });
        }
        if length < LEAST_BYTES {
            return Err(AwsEventsError::Damaged(format!("a message of {length} bytes")));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let message = read_message_from(&self.buffer[..length]);
        self.buffer.advance(length);
        let message = message.map_err(|error| AwsEventsError::Damaged(error.to_string()))?;
        Ok(Some(frame(self.message.insert(message))))
    }
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
