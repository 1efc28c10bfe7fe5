//! Mends the text of a body before it is parsed as events, piece by piece.
//!
//! The parser of events refuses a whole stream for a byte that is no UTF-8. And some servers send
//! plain JSON as a stream of events.

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};

use crate::mcp::incoming::first_byte;
use values::json::without_mark;

/// The text of a body so far.
#[derive(Debug)]
struct Text {
    form: Form,
    /// The beginning of a character whose other bytes have not arrived.
    beginning: Vec<u8>,
}

/// What a body is, as its first byte that is no blank shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    Events,
    Json,
}

/// Returns the text of events. JSON becomes one event if a body may be JSON.
pub(super) fn text_of_events<E: Send + 'static>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    may_be_json: bool,
) -> impl Stream<Item = Result<Bytes, E>> + Send + 'static {
    let mut text = Text {
        form: if may_be_json { Form::Unknown } else { Form::Events },
        beginning: Vec::new(),
    };
    let pieces = bytes.map(Some).chain(stream::iter([None]));
    pieces.map(move |piece| match piece {
        Some(piece) => piece.map(|piece| text.mended(piece)),
        None => Ok(text.end()),
    })
}

/// Returns whether a text is one of events.
pub(super) fn is_of_events(text: &[u8]) -> bool {
    let text = without_mark(text).trim_ascii_start();
    let fields = [":", "data:", "event:", "id:", "retry:"];
    fields.iter().any(|field| text.starts_with(field.as_bytes()))
}

impl Text {
    fn mended(&mut self, piece: Bytes) -> Bytes {
        let mut piece = self.characters(piece);
        let is_first = self.form == Form::Unknown;
        if is_first {
            self.form = match first_byte(&piece) {
                // Blanks before the text mean nothing.
                None => return Bytes::new(),
                Some(b'{' | b'[') => Form::Json,
                Some(_) => Form::Events,
            };
        }
        if self.form == Form::Json {
            let (field, json): (&[u8], _) = if is_first {
                (b"data:", without_mark(&piece).trim_ascii_start())
            } else {
                (b"", &*piece)
            };
            // The event is one line.
            let line = json.iter().map(|byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => *byte,
            });
            piece = field.iter().copied().chain(line).collect();
        }
        piece
    }

    fn end(&self) -> Bytes {
        let end: &[u8] = if self.form == Form::Json { b"\n\n" } else { b"" };
        Bytes::from_static(end)
    }

    /// Replaces what is no UTF-8 by U+FFFD.
    fn characters(&mut self, piece: Bytes) -> Bytes {
        if self.beginning.is_empty() && str::from_utf8(&piece).is_ok() {
            return piece;
        }
        let mut bytes = std::mem::take(&mut self.beginning);
        bytes.extend_from_slice(&piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
            if chunks.peek().is_none() && str::from_utf8(invalid).is_err_and(is_cut) {
                self.beginning = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Returns the text of a body that comes in pieces of one size.
    async fn read(body: &[u8], size: usize) -> String {
        let pieces = body.chunks(size).map(Bytes::copy_from_slice);
        let pieces: Vec<_> = pieces.map(Ok::<_, Infallible>).collect();
        let text = text_of_events(stream::iter(pieces), true);
        let pieces: Vec<_> = text.map(|piece| piece.unwrap().to_vec()).collect().await;
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[tokio::test]
    async fn a_body_becomes_the_text_of_events_in_any_pieces() {
        let cases: [(&[u8], &str); 7] = [
            (b"data: {\"a\": 1}\n\n", "data: {\"a\": 1}\n\n"),
            (b"\r\n: begun\n\n", ": begun\n\n"),
            (
                b"data: caf\xe9 \xf0\x9f \xf0\x9f\x98\x80\xc3\xa9\n",
                "data: caf\u{fffd} \u{fffd} 😀é\n",
            ),
            (b" \n{\n\"a\": \"\xe9\"\r\n}\n", "data:{ \"a\": \"\u{fffd}\"  } \n\n"),
            (b"\xef\xbb\xbf[{}]", "data:[{}]\n\n"),
            (b"", ""),
            (b" \n", ""),
        ];
        for (body, expected) in cases {
            for size in [1, 2, 3, 100] {
                assert_eq!(read(body, size).await.trim_start(), expected, "{size}");
            }
        }
    }
}
