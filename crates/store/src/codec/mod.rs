//! The formats of stored payloads. Only this module reads or writes the bytes in payload columns.
//! Contains no SQL.
//!
//! A changed format gets a new version. Each older version keeps a decoder, since committed rows
//! are never rewritten.

mod compression;
mod context;
mod documents;
mod history;
mod journal;
mod limits;
mod messages;
mod payload;
mod segment;
mod texts;

#[cfg(test)]
mod golden;

pub(crate) use self::context::{canonical_context, decode_context, encode_context};
pub(crate) use self::documents::{
    decode_definition, decode_environment, decode_output, decode_steps, encode_definition, encode_environment,
    encode_output, encode_steps,
};
pub(crate) use self::history::{HistoryBuilder, HistoryGap, StoredSegment};
pub(crate) use self::journal::{
    decode_events, decode_journal_entry, decode_steering, encode_events, encode_journal_entry, encode_steering,
};
pub(crate) use self::limits::{decode_limits, encode_limits};
pub(crate) use self::messages::{MessagePart, encode_messages};
pub use self::payload::{DecodeError, EncodeError, Payload, StoredPayload};
pub(crate) use self::payload::{NEWEST_ENCODING, check_version, full_length, open_payload};
pub use self::segment::EncodedSegment;
pub(crate) use self::texts::{decode_delivery, decode_request, encode_delivery, encode_request, plain_request};

/// The version of the columns of `sessions`.
pub(crate) const SESSION_VERSION: i16 = 1;
/// The version of segments: a JSON array of messages.
pub(crate) const SEGMENT_VERSION: i16 = 1;
/// The version of contexts: canonical JSON without the agent instance.
pub(crate) const CONTEXT_VERSION: i16 = 1;
/// The version of environments: canonical JSON.
pub(crate) const ENVIRONMENT_VERSION: i16 = 1;
/// The version of the columns and payloads of `runs`: the output, and a JSON array of steps.
pub(crate) const RUN_VERSION: i16 = 1;
/// The version of contents of workspaces: their bytes.
pub(crate) const CONTENT_VERSION: i16 = 1;
/// The version of agent definitions: canonical JSON.
pub(crate) const DEFINITION_VERSION: i16 = 1;
/// The version of the messages of webhooks: the JSON that is sent.
pub(crate) const DELIVERY_VERSION: i16 = 1;
/// The version of the requests of queued runs: JSON.
pub(crate) const REQUEST_VERSION: i16 = 1;
/// The version of entries of journals: JSON.
pub(crate) const JOURNAL_VERSION: i16 = 1;
/// The version of stored events: a JSON array of them.
pub(crate) const EVENTS_VERSION: i16 = 1;
/// The version of messages to active runs: JSON.
pub(crate) const STEERING_VERSION: i16 = 1;
