//! Responses to requests that hyper could not parse. They are built as bytes, since these requests
//! reach no handler.

use axum::body::to_bytes;
use axum::http::header;
use axum::response::Response;

use super::codes::ProblemCode;
use super::guards::{MAX_URI, headers_too_large, uri_too_long};
use super::limits::HttpLimits;
use super::problem::Problem;
use values::clock::Timestamp;

/// How dates are written in headers (RFC 9110).
const DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// Returns the problem of a request that can't be parsed; `None` if the connection failed in
/// another way. `head` is the part of the request that was read.
pub(super) fn parse_problem(error: &hyper::Error, head: &[u8], limits: &HttpLimits) -> Option<Problem> {
    if error.is_parse_too_large() {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Some(if line.len() > MAX_URI {
            uri_too_long()
        } else {
            headers_too_large(limits.max_header_bytes)
        });
    }
    if error.is_timeout() && !head.is_empty() {
        let seconds = limits.header_timeout.as_secs_f64();
        let words = format!("the headers did not arrive within {seconds} seconds");
        return Some(Problem::new(ProblemCode::RequestTimeout, words));
    }
    let words = if error.is_parse_version_h2() {
        "the service speaks HTTP/1.1, and the request is HTTP/2".to_owned()
    } else if error.is_parse() {
        // This is the most frequent mistake, since example URLs often have these characters.
        let advice = "; in the address, characters such as `\"`, `<`, `{` and spaces must be percent-encoded";
        let advice = if error.to_string().contains("URI") { advice } else { "" };
        format!("the request can't be read: {error}{advice}")
    } else {
        return None;
    };
    Some(Problem::new(ProblemCode::MalformedRequest, words))
}

/// Returns the bytes of a response that closes the connection.
pub(super) async fn response_bytes(response: Response, now: Timestamp) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    // A problem is in memory already.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in parts.headers.iter().filter(|(name, _)| **name != header::CONNECTION) {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let (length, date) = (body.len(), now.format(DATE));
    bytes.extend(format!("content-length: {length}\r\nconnection: close\r\ndate: {date}\r\n\r\n").bytes());
    bytes.extend(body);
    bytes
}
