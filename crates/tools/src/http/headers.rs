//! Names of headers that nobody may set. No IO.

/// Headers that describe the connection or the body, which the client sets itself.
const CONNECTION_HEADERS: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Returns whether the client sets the header itself. The name is in lower case.
pub(crate) fn is_connection_header(name: &str) -> bool {
    CONNECTION_HEADERS.contains(&name) || name.starts_with("proxy-")
}
