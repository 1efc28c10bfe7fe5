//! Names of headers that a definition or a model may set. No IO.

use super::definition::ValueSource;
use crate::fault::DefinitionFault;
use net::outgoing::HeaderName;
use values::http_headers::CREDENTIAL_HEADERS;

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

/// Reads the name of a header that a definition sets. The value of a header with credentials must
/// be a secret.
pub(crate) fn header_name(key: &str, name: &str, source: &ValueSource) -> Result<HeaderName, DefinitionFault> {
    let fault = |problem: &str| DefinitionFault::new(key, problem);
    let parsed: HeaderName = name.parse().map_err(|_| fault("is not the name of a header"))?;
    if is_connection_header(parsed.as_str()) {
        return Err(fault("the service sets this header itself"));
    }
    let is_text = matches!(source, ValueSource::Text(_));
    if is_text && CREDENTIAL_HEADERS.contains(&parsed.as_str()) {
        return Err(fault(
            "a header with credentials: name a secret, as in { secret = \"NAME\" }",
        ));
    }
    Ok(parsed)
}
