//! What payloads hold: messages, states, steps and definitions as JSON. Bytes are encoded once, and hashed as they are stored.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer as _};

use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, open_payload};
use super::{DEFINITION_VERSION, RUN_VERSION, STATE_VERSION};
use crate::agent::AgentDefinition;
use crate::json::canonical_bytes;
use crate::message::Message;
use crate::record::StepRecord;
use crate::session::{EnvironmentState, Hash, StoredContext, hash_context, hash_definition, hash_environment};

/// Encodes messages as a JSON array, not yet compressed.
pub(crate) fn encode_messages<'a>(
    messages: impl IntoIterator<Item = &'a Arc<Message>>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::with_capacity(1024);
    serde_json::Serializer::new(&mut bytes)
        .collect_seq(messages)
        .map_err(EncodeError::Json)?;
    Ok(bytes)
}

/// Decodes the messages of a run's output.
pub(crate) fn decode_messages(stored: StoredPayload<'_>) -> Result<Vec<Arc<Message>>, DecodeError> {
    decode(stored, RUN_VERSION)
}

/// Encodes the steps of a run.
pub(crate) fn encode_steps(steps: &[StepRecord]) -> Result<Payload, EncodeError> {
    let bytes = serde_json::to_vec(steps).map_err(EncodeError::Json)?;
    Payload::encode(RUN_VERSION, bytes)
}

/// Decodes the steps of a run.
pub(crate) fn decode_steps(stored: StoredPayload<'_>) -> Result<Vec<StepRecord>, DecodeError> {
    decode(stored, RUN_VERSION)
}

/// Encodes an environment and computes the hash that addresses it.
pub(crate) fn encode_environment(environment: &EnvironmentState) -> Result<(Hash, Payload), EncodeError> {
    encode_canonical(environment, hash_environment, STATE_VERSION)
}

/// Encodes a context and computes the hash that addresses it.
pub(crate) fn encode_context(context: &StoredContext) -> Result<(Hash, Payload), EncodeError> {
    encode_canonical(context, hash_context, STATE_VERSION)
}

/// Encodes a definition and computes the hash that names its version.
pub(crate) fn encode_definition(definition: &AgentDefinition) -> Result<(Hash, Payload), EncodeError> {
    encode_canonical(definition, hash_definition, DEFINITION_VERSION)
}

/// Decodes a definition.
pub(crate) fn decode_definition(stored: StoredPayload<'_>) -> Result<AgentDefinition, DecodeError> {
    decode(stored, DEFINITION_VERSION)
}

/// Decodes an environment.
pub(crate) fn decode_environment(stored: StoredPayload<'_>) -> Result<EnvironmentState, DecodeError> {
    decode(stored, STATE_VERSION)
}

/// Decodes a context.
pub(crate) fn decode_context(stored: StoredPayload<'_>) -> Result<StoredContext, DecodeError> {
    decode(stored, STATE_VERSION)
}

fn encode_canonical<T: Serialize>(
    value: &T,
    hash: fn(&[u8]) -> Hash,
    version: i16,
) -> Result<(Hash, Payload), EncodeError> {
    let bytes = canonical_bytes(value).map_err(EncodeError::Json)?;
    Ok((hash(&bytes), Payload::encode(version, bytes)?))
}

fn decode<T: DeserializeOwned>(stored: StoredPayload<'_>, known: i16) -> Result<T, DecodeError> {
    let bytes = open_payload(stored, known)?;
    serde_json::from_slice(&bytes).map_err(DecodeError::Json)
}
