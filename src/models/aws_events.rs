//! Splits `application/vnd.amazon.eventstream` into frames, in linear time and bounded memory.
//! Exceptions and errors become frames of their own name, whose data is a JSON error. AWS's own
//! crate parses the messages and checks their checksums. No IO.

use aws_smithy_eventstream::frame::read_message_from;
use bytes::{Buf as _, BytesMut};

use super::sse::Frame;
use super::wire::Fields;

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
}

impl AwsEvents {
    /// Makes a splitter for messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
        }
    }

    /// Takes the next bytes, and appends the frames of completed messages, even if it fails.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), AwsEventsError> {
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= LENGTH_BYTES {
            let length = self.buffer.chunk().get_u32() as usize;
            if length > self.limit {
                return Err(AwsEventsError::TooLarge { limit: self.limit });
            }
            if length < LEAST_BYTES {
                return Err(AwsEventsError::Damaged(format!("a message of {length} bytes")));
            }
            if self.buffer.len() < length {
                break;
            }
            let message = self.buffer.split_to(length);
            let message =
                read_message_from(&message[..]).map_err(|error| AwsEventsError::Damaged(error.to_string()))?;
            let header = |name: &str| {
                let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
                header.value().as_string().ok().map(|value| value.as_str().to_owned())
            };
            let name = [":event-type", ":exception-type", ":error-code"]
                .into_iter()
                .find_map(header)
                .unwrap_or_default();
            let payload = String::from_utf8_lossy(message.payload()).into_owned();
            let data = header(":error-message").unwrap_or(payload);
            let is_error = header(":message-type").is_some_and(|kind| kind == "exception" || kind == "error");
            frames.push(if is_error {
                error_frame(&name, &data)
            } else {
                Frame { name, data }
            });
        }
        Ok(())
    }
}

/// Returns the frame of an exception or an error, with its name and the status that corresponds to
/// it.
fn error_frame(name: &str, data: &str) -> Frame {
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
        name: EXCEPTION.to_owned(),
        data: body.to_string(),
    }
}
