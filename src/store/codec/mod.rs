//! Stored forms: the only owner of what the payload columns hold. No SQL.
//!
//! A form that changes gets a new version and a decoder for each older one, since committed rows are never rewritten.

mod documents;
mod history;
mod payload;
mod segment;

pub(crate) use self::documents::{
    decode_context, decode_definition, decode_environment, decode_messages, decode_steps, encode_context,
    encode_definition, encode_environment, encode_messages, encode_steps,
};
pub(crate) use self::history::{HistoryBuilder, StoredSegment};
pub(crate) use self::payload::{DecodeError, EncodeError, Payload, StoredPayload, check_version, open_payload};
pub use self::segment::EncodedSegment;

/// The version of the columns of `sessions`.
pub(crate) const SESSION_VERSION: i16 = 1;
/// The version of segments: a JSON array of messages.
pub(crate) const SEGMENT_VERSION: i16 = 1;
/// The version of environments and contexts: canonical JSON.
pub(crate) const STATE_VERSION: i16 = 1;
/// The version of the columns and payloads of `runs`: JSON arrays of messages and of steps.
pub(crate) const RUN_VERSION: i16 = 1;
/// The version of agent definitions: canonical JSON.
pub(crate) const DEFINITION_VERSION: i16 = 1;
