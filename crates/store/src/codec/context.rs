//! Contexts: canonical JSON, without the agent instance, which is in the session's row. So equal
//! contexts of different conversations have one hash, and are stored once.

use super::CONTEXT_VERSION;
use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, decode};
use values::json::{Value, canonical_bytes, read_open, write_open};
use values::session::{AgentInstance, Hash, StoredContext, hash_context};

/// The keys of the agent instance in JSON.
const AGENT_KEYS: [&str; 2] = ["agent_id", "created_at"];

/// Encodes a context and computes the hash that addresses it.
pub(crate) fn encode_context(context: &StoredContext) -> Result<(Hash, Payload), EncodeError> {
    let bytes = canonical_context(context)?;
    Ok((hash_context(&bytes), Payload::encode(CONTEXT_VERSION, bytes)?))
}

/// Returns the JSON of a context that its hash covers.
pub(crate) fn canonical_context(context: &StoredContext) -> Result<Vec<u8>, EncodeError> {
    let mut written = write_open(context, &context.unread).map_err(EncodeError::Json)?;
    if let Value::Object(fields) = &mut written {
        fields.retain(|key, _| !AGENT_KEYS.contains(&key.as_str()));
    }
    canonical_bytes(&written).map_err(EncodeError::Json)
}

/// Decodes a context. `agent` is the agent instance in the session's row.
pub(crate) fn decode_context(stored: StoredPayload<'_>, agent: AgentInstance) -> Result<StoredContext, DecodeError> {
    let mut value: Value = decode(stored, CONTEXT_VERSION)?;
    if let Value::Object(fields) = &mut value {
        let values = [
            serde_json::to_value(agent.agent_id),
            serde_json::to_value(agent.created_at),
        ];
        for (key, value) in AGENT_KEYS.into_iter().zip(values) {
            fields.insert(key.to_owned(), value.map_err(DecodeError::Json)?);
        }
    }
    let (context, unread) = read_open::<StoredContext>(&value).map_err(DecodeError::Json)?;
    Ok(StoredContext { unread, ..context })
}
