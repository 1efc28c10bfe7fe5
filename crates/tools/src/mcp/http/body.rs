//! Limits of the bytes of responses.
//!
//! The parser of events holds an event until it is complete. So each event has a limit, and so has
//! the whole response to a request.

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use super::text::text_of_events;
use net::outgoing::OutgoingError;

/// A body that can't be read to its end.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    /// The connection broke.
    #[error(transparent)]
    Broken(#[from] OutgoingError),
    /// The response, or an event of it, is larger than allowed.
    #[error("the response has more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
}

/// The bytes that the limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// All events together.
    All,
    /// Each event for itself, since the stream has no end.
    Each,
}

/// Returns the events of a body.
pub(super) fn events(
    body: impl Stream<Item = Result<Bytes, OutgoingError>> + Send + 'static,
    max: usize,
    counted: Counted,
) -> BoxStream<'static, Result<Sse, SseError>> {
    // A stream that has no end is no JSON.
    let text = text_of_events(limited(body, max, counted), counted == Counted::All);
    SseStream::from_bytes_stream(text).boxed()
}

/// Passes on the pieces of a body up to the limit.
fn limited(
    body: impl Stream<Item = Result<Bytes, OutgoingError>> + Send + 'static,
    max: usize,
    counted: Counted,
) -> BoxStream<'static, Result<Bytes, BodyError>> {
    let mut limit = Limit {
        left: max,
        max,
        counted,
        is_at_line_start: false,
    };
    let pieces = body.map(move |piece| -> Result<Bytes, BodyError> {
        let piece = piece?;
        limit.note(&piece)?;
        Ok(piece)
    });
    pieces.boxed()
}

/// How much of a body may be read.
struct Limit {
    left: usize,
    max: usize,
    counted: Counted,
    is_at_line_start: bool,
}

impl Limit {
    /// Counts a piece. An empty line ends an event.
    fn note(&mut self, piece: &[u8]) -> Result<(), BodyError> {
        let max = self.max;
        let too_large = || BodyError::TooLarge { max };
        if self.counted == Counted::All {
            self.left = self.left.checked_sub(piece.len()).ok_or_else(too_large)?;
            return Ok(());
        }
        for byte in piece {
            self.left = self.left.checked_sub(1).ok_or_else(too_large)?;
            match byte {
                b'\n' if self.is_at_line_start => self.left = self.max,
                b'\n' => self.is_at_line_start = true,
                b'\r' => (),
                _ => self.is_at_line_start = false,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// Returns how many pieces are read before the limit.
    async fn read(pieces: &[&'static str], max: usize, counted: Counted) -> (usize, bool) {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
            .collect();
        let mut body = limited(stream::iter(pieces), max, counted);
        let mut read = 0;
        while let Some(piece) = body.next().await {
            if piece.is_err() {
                return (read, false);
            }
            read += 1;
        }
        (read, true)
    }

    #[tokio::test]
    async fn a_response_is_read_up_to_its_limit() {
        let event = "data: 1\n\n";
        for (pieces, max, counted, expected) in [
            (&[event, event][..], 18, Counted::All, (2, true)),
            (&[event, event], 17, Counted::All, (1, false)),
            (&[event, event, event], 9, Counted::Each, (3, true)),
            (&["data: 1\r\n\r\n", "data: 1\r\n\r\n"], 11, Counted::Each, (2, true)),
            (&["data: 1\n", "\ndata: 2\n\n"], 9, Counted::Each, (2, true)),
            (&[event, "data: 12\n\n"], 9, Counted::Each, (1, false)),
            (&["data: 1\n", "data: 2\n"], 9, Counted::Each, (1, false)),
        ] {
            assert_eq!(
                read(pieces, max, counted).await,
                expected,
                "{pieces:?} {max} {counted:?}"
            );
        }
    }
}
