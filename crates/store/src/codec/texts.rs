//! Payloads that are stored exactly as the given text: messages of webhooks, since they are signed,
//! and requests of runs, which are JSON already.

use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, decode_text};
use super::{DELIVERY_VERSION, REQUEST_VERSION};

/// Encodes the message of a webhook.
pub(crate) fn encode_delivery(body: &str) -> Result<Payload, EncodeError> {
    Payload::encode(DELIVERY_VERSION, body.as_bytes().to_vec())
}

/// Decodes the message of a webhook.
pub(crate) fn decode_delivery(stored: StoredPayload<'_>) -> Result<String, DecodeError> {
    decode_text(stored, DELIVERY_VERSION)
}

/// Encodes the request of a run.
pub(crate) fn encode_request(request: &str) -> Result<Payload, EncodeError> {
    Payload::encode(REQUEST_VERSION, request.as_bytes().to_vec())
}

/// Wraps the request of a run without compressing it, for callers that need no row.
pub(crate) fn plain_request(request: String) -> Payload {
    Payload::plain(REQUEST_VERSION, request.into_bytes())
}

/// Decodes the request of a run.
pub(crate) fn decode_request(stored: StoredPayload<'_>) -> Result<String, DecodeError> {
    decode_text(stored, REQUEST_VERSION)
}
