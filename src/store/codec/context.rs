//! Contexts: canonical JSON, without the agent instance, which is in the session's row. So equal
//! contexts of different conversations have one hash, and are stored once.
//!
//! In version 1 the JSON has the agent instance. The hash covers the form, so a row can't state a
//! wrong one.

use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, decode, open_payload};
use crate::json::{Value, canonical_bytes, read_open, write_open};
use crate::session::{AgentInstance, ContextForm, Hash, StoredContext, hash_context};

/// The newest version of contexts.
pub(crate) const CONTEXT_VERSION: i16 = 2;
/// The last version with the agent instance.
const VERSION_WITH_AGENT: i16 = 1;
/// The keys of the agent instance in JSON.
const AGENT_KEYS: [&str; 2] = ["agent_id", "created_at"];

/// Encodes a context and computes the hash that addresses it.
pub(crate) fn encode_context(context: &StoredContext, form: ContextForm) -> Result<(Hash, Payload), EncodeError> {
    let bytes = canonical_context(context, form)?;
    Ok((
        hash_context(&bytes, form),
        Payload::encode(context_version(form), bytes)?,
    ))
}

/// Returns the JSON of a context that its hash covers.
pub(crate) fn canonical_context(context: &StoredContext, form: ContextForm) -> Result<Vec<u8>, EncodeError> {
    let mut written = write_open(context, &context.unread).map_err(EncodeError::Json)?;
    if form == ContextForm::WithoutAgent
        && let Value::Object(fields) = &mut written
    {
        fields.retain(|key, _| !AGENT_KEYS.contains(&key.as_str()));
    }
    canonical_bytes(&written).map_err(EncodeError::Json)
}

/// Returns the version that contexts of a form have.
pub(crate) const fn context_version(form: ContextForm) -> i16 {
    match form {
        ContextForm::WithoutAgent => CONTEXT_VERSION,
        ContextForm::WithAgent => VERSION_WITH_AGENT,
    }
}

/// Decodes a context. `agent` is the agent instance in the session's row.
pub(crate) fn decode_context(
    stored: StoredPayload<'_>,
    agent: Option<AgentInstance>,
) -> Result<StoredContext, DecodeError> {
    let mut value: Value = decode(stored, CONTEXT_VERSION)?;
    if form_of(stored) == ContextForm::WithoutAgent
        && let Value::Object(fields) = &mut value
    {
        let AgentInstance { agent_id, created_at } = agent.ok_or(DecodeError::NoAgentInstance)?;
        let values = [serde_json::to_value(agent_id), serde_json::to_value(created_at)];
        for (key, value) in AGENT_KEYS.into_iter().zip(values) {
            fields.insert(key.to_owned(), value.map_err(DecodeError::Json)?);
        }
    }
    let (context, unread) = read_open::<StoredContext>(&value).map_err(DecodeError::Json)?;
    Ok(StoredContext { unread, ..context })
}

/// Computes the hash that addresses a stored context.
pub(crate) fn hash_stored_context(stored: StoredPayload<'_>) -> Result<Hash, DecodeError> {
    let bytes = open_payload(stored, CONTEXT_VERSION)?;
    Ok(hash_context(&bytes, form_of(stored)))
}

fn form_of(stored: StoredPayload<'_>) -> ContextForm {
    if stored.schema_version == VERSION_WITH_AGENT {
        ContextForm::WithAgent
    } else {
        ContextForm::WithoutAgent
    }
}
