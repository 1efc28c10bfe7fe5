//! Splits `application/vnd.amazon.eventstream` into messages, in linear time and bounded memory.
//! AWS's own crate parses the frames and checks their checksums. No IO, no JSON.

use aws_smithy_eventstream::frame::read_message_from;
use bytes::{Buf as _, BytesMut};

/// The bytes of the length of a message.
const LENGTH_BYTES: usize = 4;
/// The shortest message: a prelude and two checksums around nothing.
const LEAST_BYTES: usize = 16;

/// One message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// `event`, `exception` or `error`.
    pub(super) kind: String,
    /// The name of the event or the exception, or the code of the error.
    pub(super) name: String,
    /// The payload, or the words of the error. Bytes that are not UTF-8 became U+FFFD.
    pub(super) data: String,
}

/// Why bytes are no messages.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameFault {
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

/// Cuts a stream piece by piece.
#[derive(Debug)]
pub(super) struct Frames {
    limit: usize,
    buffer: BytesMut,
}

impl Frames {
    /// Makes a cutter of messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
        }
    }

    /// Takes the next bytes and appends the messages that they complete, also when it fails.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), FrameFault> {
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= LENGTH_BYTES {
            let length = self.buffer.chunk().get_u32() as usize;
            if length > self.limit {
                return Err(FrameFault::TooLarge { limit: self.limit });
            }
            if length < LEAST_BYTES {
                return Err(FrameFault::Damaged(format!("a message of {length} bytes")));
            }
            if self.buffer.len() < length {
                break;
            }
            let message = self.buffer.split_to(length);
            let message = read_message_from(&message[..]).map_err(|error| FrameFault::Damaged(error.to_string()))?;
            let header = |name: &str| {
                let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
                header.value().as_string().ok().map(|value| value.as_str().to_owned())
            };
            let kind = header(":message-type").unwrap_or_default();
            let name = [":event-type", ":exception-type", ":error-code"]
                .into_iter()
                .find_map(header);
            let payload = String::from_utf8_lossy(message.payload()).into_owned();
            frames.push(Frame {
                kind,
                name: name.unwrap_or_default(),
                data: header(":error-message").unwrap_or(payload),
            });
        }
        Ok(())
    }
}
