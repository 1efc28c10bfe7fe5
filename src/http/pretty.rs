//! The parameter `pretty`: JSON with line breaks, for people. Only spacing changes; numbers, texts and the order of keys stay as they are.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::parameters::invalid;
use super::problem::Problem;

const PARAMETER: &str = "pretty";
/// One level.
const INDENT: &str = "  ";

/// Takes the parameter from those of a query, so that no handler need know it.
pub(super) fn take_pretty(given: &mut BTreeMap<String, String>) -> Result<(), Problem> {
    match given.remove(PARAMETER).as_deref() {
        None | Some("" | "true" | "false") => Ok(()),
        Some(_) => Err(invalid(PARAMETER, "neither `true` nor `false`")),
    }
}

/// Indents the JSON of a response, a problem included, where the query asks for it. A stream of events stays as it is.
pub(super) async fn indent(request: Request, next: Next) -> Response {
    let is_wanted = request.uri().query().is_some_and(asks_for_it);
    let response = next.run(request).await;
    if !is_wanted || !is_json(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Such a body is in memory already, so reading it neither waits nor fails.
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::error!(error = error.to_string(), "response can't be read");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(indented(&bytes)))
}

fn asks_for_it(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| [PARAMETER, "pretty=", "pretty=true"].contains(&pair))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    matches!(media_type, Some(b"application/json" | b"application/problem+json"))
}

/// Indents a JSON text. It knows strings and brackets, and copies all else.
fn indented(json: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for (index, &byte) in json.iter().enumerate() {
        if is_string {
            text.push(byte);
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'{' | b'[' => {
                depth += 1;
                text.push(byte);
                if !matches!(json.get(index + 1), Some(b'}' | b']')) {
                    break_line(&mut text, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(text.last(), Some(b'{' | b'[')) {
                    break_line(&mut text, depth);
                }
                text.push(byte);
            }
            b',' => {
                text.push(byte);
                break_line(&mut text, depth);
            }
            b':' => text.extend(b": "),
            _ => {
                is_string = byte == b'"';
                text.push(byte);
            }
        }
    }
    text.push(b'\n');
    text
}

fn break_line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.extend(INDENT.repeat(depth).bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_spacing_changes() {
        let value = json!({"a": [1, 2.5, {}, [], [[]]], "b": {"c": "x: {\"y\", [1]}\\"}, "d": null, "e": "\\\""});
        let text = indented(value.to_string().as_bytes());
        assert_eq!(String::from_utf8(text).unwrap(), format!("{value:#}\n"));
        assert_eq!(
            indented(b"[1e2,18446744073709551616]"),
            b"[\n  1e2,\n  18446744073709551616\n]\n"
        );
        assert_eq!(indented(Value::Null.to_string().as_bytes()), b"null\n");
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
            assert_eq!(asks_for_it(query), expected, "{query}");
        }
    }
}
