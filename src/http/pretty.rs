//! The parameter `pretty`: adds line breaks to JSON, for people. Numbers, texts and the order of
//! keys stay the same.

use std::mem;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};

/// The name of the parameter.
pub(super) const PRETTY: &str = "pretty";
/// How many bytes of a body are indented at once.
const PIECE_BYTES: usize = 4 << 10;
/// The indentation of one level.
const INDENT: &str = "  ";

/// Returns whether the query asks for an indented response.
pub(super) fn wants_indented(target: &Uri) -> bool {
    target.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| [PRETTY, "pretty=", "pretty=true"].contains(&pair))
    })
}

/// Indents the JSON of a response or a problem. A stream of events is not changed.
pub(super) fn indent(response: Response) -> Response {
    if !is_json(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, indented(body))
}

/// Indents a JSON text.
pub fn indented_json(json: &[u8]) -> Vec<u8> {
    Indenter::default().indent(json)
}

/// Indents a body in small pieces while it is sent. Deep JSON takes many times its size when
/// indented.
fn indented(body: Body) -> Body {
    let mut indenter = Indenter::default();
    let pieces = body
        .into_data_stream()
        .flat_map(|piece| stream::iter(small_pieces(piece)));
    let pieces = pieces.map(move |piece| Ok::<_, axum::Error>(Bytes::from(indenter.indent(&piece?))));
    let end = stream::once(async { Ok(Bytes::from_static(b"\n")) });
    Body::from_stream(pieces.chain(end))
}

fn small_pieces(piece: Result<Bytes, axum::Error>) -> impl Iterator<Item = Result<Bytes, axum::Error>> {
    let (bytes, error) = match piece {
        Ok(bytes) => (bytes, None),
        Err(error) => (Bytes::new(), Some(error)),
    };
    let starts = (0..bytes.len()).step_by(PIECE_BYTES);
    let pieces = starts.map(move |start| Ok(bytes.slice(start..bytes.len().min(start + PIECE_BYTES))));
    pieces.chain(error.map(Err))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    matches!(media_type, Some(b"application/json" | b"application/problem+json"))
}

/// Indents a JSON text piece by piece. Recognises strings and brackets, and copies all other bytes.
#[derive(Default)]
struct Indenter {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    /// Whether the last byte opened an object or an array.
    is_opened: bool,
}

impl Indenter {
    fn indent(&mut self, json: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(json.len() * 2);
        for &byte in json {
            if self.is_string {
                text.push(byte);
                self.is_string = self.is_escaped || byte != b'"';
                self.is_escaped = !self.is_escaped && byte == b'\\';
                continue;
            }
            let was_opened = mem::take(&mut self.is_opened);
            let is_closed = matches!(byte, b'}' | b']');
            if is_closed {
                self.depth = self.depth.saturating_sub(1);
            }
            // An empty object or array stays on one line.
            if was_opened != is_closed {
                break_line(&mut text, self.depth);
            }
            if byte == b':' {
                text.extend(b": ");
                continue;
            }
            text.push(byte);
            match byte {
                b'{' | b'[' => {
                    self.depth += 1;
                    self.is_opened = true;
                }
                b',' => break_line(&mut text, self.depth),
                _ => self.is_string = byte == b'"',
            }
        }
        text
    }
}

fn break_line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.extend(INDENT.repeat(depth).bytes());
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn text(json: impl Into<Body>) -> String {
        let bytes = to_bytes(indented(json.into()), usize::MAX).await.unwrap();
        String::from_utf8(bytes.into()).unwrap()
    }

    #[tokio::test]
    async fn deep_json_is_indented_a_small_piece_at_a_time() {
        let deep = ["[".repeat(64), vec!["1"; 100_000].join(","), "]".repeat(64)].concat();
        let mut pieces = indented(Body::from(deep.clone())).into_data_stream();
        let mut all = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() < 1 << 20);
            all.extend(piece);
        }
        assert!(all.len() > 10 << 20);
        let read: Value = serde_json::from_slice(&all).unwrap();
        assert_eq!(read.to_string(), deep);
    }

    #[tokio::test]
    async fn only_spacing_changes() {
        let value = json!({"a": [1, 2.5, {}, [], [[]]], "b": {"c": "x: {\"y\", [1]}\\"}, "d": null, "e": "\\\""});
        assert_eq!(text(value.to_string()).await, format!("{value:#}\n"));
        let mut indenter = Indenter::default();
        let pieces = value.to_string().into_bytes();
        let pieces: Vec<_> = pieces.chunks(1).flat_map(|piece| indenter.indent(piece)).collect();
        assert_eq!(String::from_utf8(pieces).unwrap(), format!("{value:#}"));
        assert_eq!(
            text("[1e2,18446744073709551616]").await,
            "[\n  1e2,\n  18446744073709551616\n]\n"
        );
        assert_eq!(text(Value::Null.to_string()).await, "null\n");
    }

    #[test]
    fn it_is_asked_for_by_name() {
        for (query, expected) in [
            ("pretty", true),
            ("limit=1&pretty=true", true),
            ("pretty=&limit=1", true),
            ("pretty=false", false),
            ("prettyer", false),
            ("agent=pretty", false),
        ] {
            let target = format!("/v1/runs?{query}").parse().unwrap();
            assert_eq!(wants_indented(&target), expected, "{query}");
        }
    }
}
