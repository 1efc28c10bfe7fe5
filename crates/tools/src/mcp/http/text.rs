//! Mends the text of a body before it is parsed as events, piece by piece.
//!
//! The parser of events refuses a whole stream for a byte that is no UTF-8. And some servers send
//! plain JSON as a stream of events.

use bytes::Bytes;
use encoding_rs::{Decoder, UTF_8};
use futures_util::stream::{self, Stream, StreamExt as _};

use crate::mcp::incoming::first_byte;
use values::json::without_mark;

/// Reads the text of a body.
struct Text {
    form: Form,
    /// Replaces invalid UTF-8 by U+FFFD.
    decoder: Decoder,
}

/// The form of a body. Its first byte that is not blank shows it.
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
        decoder: UTF_8.new_decoder_with_bom_removal(),
    };
    let pieces = bytes.map(Some).chain(stream::iter([None]));
    pieces.map(move |piece| match piece {
        Some(piece) => piece.map(|piece| text.mended(&piece)),
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
    fn mended(&mut self, piece: &[u8]) -> Bytes {
        let piece = self.characters(piece, false);
        let is_first = self.form == Form::Unknown;
        if is_first {
            self.form = match first_byte(piece.as_bytes()) {
                // Blanks before the text mean nothing.
                None => return Bytes::new(),
                Some(b'{' | b'[') => Form::Json,
                Some(_) => Form::Events,
            };
        }
        if self.form == Form::Events {
            return piece.into();
        }
        // The event is one line.
        let line = piece.replace(['\n', '\r'], " ");
        if is_first {
            format!("data:{}", line.trim_start()).into()
        } else {
            line.into()
        }
    }

    fn end(&mut self) -> Bytes {
        let mut end = self.characters(&[], true);
        if self.form == Form::Json {
            end.push_str("\n\n");
        }
        end.into()
    }

    fn characters(&mut self, piece: &[u8], is_last: bool) -> String {
        let room = self.decoder.max_utf8_buffer_length(piece.len());
        let mut text = String::with_capacity(room.unwrap_or_default());
        let _ = self.decoder.decode_to_string(piece, &mut text, is_last);
        text
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
