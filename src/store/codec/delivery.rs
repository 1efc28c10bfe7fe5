//! Webhook messages: JSON that is stored and sent byte for byte, since it is signed.

use super::DELIVERY_VERSION;
use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, open_payload};

/// Encodes a message.
pub(crate) fn encode_delivery(body: &str) -> Result<Payload, EncodeError> {
    Payload::encode(DELIVERY_VERSION, body.as_bytes().to_vec())
}

/// Decodes a message.
pub(crate) fn decode_delivery(stored: StoredPayload<'_>) -> Result<String, DecodeError> {
    let bytes = open_payload(stored, DELIVERY_VERSION)?.into_owned();
    String::from_utf8(bytes).map_err(|error| DecodeError::Text(error.utf8_error()))
}
