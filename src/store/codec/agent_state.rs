//! The state of an agent in its two stored forms, and what a step adds to it. All are canonical JSON: equal states give equal bytes,
//! and what a later version wrote is written again.

use super::AGENT_STATE_VERSION;
use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, open_payload};
use crate::agent::state::{AgentState, StateAddition};
use crate::json::Value;

/// How much of a state is stored (document 000, "Serialization Models").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateModel {
    /// Model A: the session's data, for a fresh execution.
    Session,
    /// Model B: the execution as well, for its resumption.
    Full,
}

/// Encodes a state. What is transient is left out: the step in progress, when it began, and what was sent to models.
pub fn encode_agent_state(state: &AgentState, model: StateModel) -> Result<Payload, EncodeError> {
    let state = match model {
        StateModel::Session => state.clone().for_next_execution().to_json(),
        StateModel::Full => state.to_json(),
    };
    encode(state)
}

/// Decodes a state of either model.
pub fn decode_agent_state(stored: StoredPayload<'_>) -> Result<AgentState, DecodeError> {
    AgentState::from_json(decode(stored)?).map_err(DecodeError::Json)
}

/// Encodes what a state has more than an earlier one: a step with its messages, mostly. Costs as much as that, at any length of the
/// history and of the execution.
pub fn encode_state_addition(addition: &StateAddition) -> Result<Payload, EncodeError> {
    encode(addition.to_json())
}

/// Decodes an addition.
pub fn decode_state_addition(stored: StoredPayload<'_>) -> Result<StateAddition, DecodeError> {
    StateAddition::from_json(decode(stored)?).map_err(DecodeError::Json)
}

fn encode(written: Result<Value, serde_json::Error>) -> Result<Payload, EncodeError> {
    let bytes = written.and_then(|written| serde_json::to_vec(&written));
    Payload::encode(AGENT_STATE_VERSION, bytes.map_err(EncodeError::Json)?)
}

fn decode(stored: StoredPayload<'_>) -> Result<Value, DecodeError> {
    serde_json::from_slice(&open_payload(stored, AGENT_STATE_VERSION)?).map_err(DecodeError::Json)
}
