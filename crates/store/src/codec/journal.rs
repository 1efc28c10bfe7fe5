//! Payloads of runs that have not ended, as JSON: journal entries, events and messages to runs.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::messages::{read_message, write_message};
use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, decode};
use super::{EVENTS_VERSION, JOURNAL_VERSION, STEERING_VERSION};
use agent::journal::JournalEntry;
use agent::ports::ToolUse;
use agent::record::RunEvent;
use agent::state::{AgentStep, StateAddition, ToolExecution};
use values::clock::Timestamp;
use values::ids::{AgentId, SessionId};
use values::json::Value;
use values::message::Message;
use values::session::{EnvironmentState, Hash};

/// The stored form of an entry. Steps and additions retain fields that this version does not know.
#[derive(Serialize, Deserialize)]
#[serde(remote = "JournalEntry", tag = "type", rename_all = "snake_case")]
enum StoredEntry {
    SubagentBegun {
        session_id: SessionId,
        agent_id: AgentId,
        agent_version: Hash,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<Box<EnvironmentState>>,
    },
    EnvironmentChanged {
        revision: u64,
        state: Box<EnvironmentState>,
    },
    #[serde(with = "reached")]
    Reached(StateAddition),
    CallsRequested {
        #[serde(with = "step")]
        step: Box<AgentStep>,
        started_at: Timestamp,
        addition: StateAddition,
    },
    CallDecided {
        index: usize,
        tool_use: ToolUse,
        addition: StateAddition,
    },
    CallBegun {
        index: usize,
    },
    CallEnded {
        index: usize,
        execution: Box<ToolExecution>,
        addition: StateAddition,
    },
}

/// Encodes an entry of a journal.
pub(crate) fn encode_journal_entry(entry: &JournalEntry) -> Result<Payload, EncodeError> {
    let mut bytes = Vec::with_capacity(1024);
    StoredEntry::serialize(entry, &mut serde_json::Serializer::new(&mut bytes)).map_err(EncodeError::Json)?;
    Payload::encode(JOURNAL_VERSION, bytes)
}

/// Decodes an entry of a journal.
pub(crate) fn decode_journal_entry(stored: StoredPayload<'_>) -> Result<JournalEntry, DecodeError> {
    #[derive(Deserialize)]
    struct Entry(#[serde(with = "StoredEntry")] JournalEntry);

    decode(stored, JOURNAL_VERSION).map(|Entry(entry)| entry)
}

/// Encodes consecutive events.
pub(crate) fn encode_events(events: &[Arc<RunEvent>]) -> Result<Payload, EncodeError> {
    let bytes = serde_json::to_vec(events).map_err(EncodeError::Json)?;
    Payload::encode(EVENTS_VERSION, bytes)
}

/// Decodes events.
pub(crate) fn decode_events(stored: StoredPayload<'_>) -> Result<Vec<Arc<RunEvent>>, DecodeError> {
    decode(stored, EVENTS_VERSION)
}

/// Encodes a message to an active run.
pub(crate) fn encode_steering(message: &Message) -> Result<Payload, EncodeError> {
    let bytes = write_message(message).and_then(|written| serde_json::to_vec(&written));
    Payload::encode(STEERING_VERSION, bytes.map_err(EncodeError::Json)?)
}

/// Decodes a message to an active run.
pub(crate) fn decode_steering(stored: StoredPayload<'_>) -> Result<Message, DecodeError> {
    let stored: Value = decode(stored, STEERING_VERSION)?;
    read_message(&stored)
        .map(Arc::unwrap_or_clone)
        .map_err(DecodeError::Json)
}

/// Serializes the state of an execution in a separate field.
mod reached {
    use super::{Deserialize, Deserializer, Serialize, Serializer, StateAddition};

    #[derive(Serialize, Deserialize)]
    struct Reached<T> {
        addition: T,
    }

    pub(super) fn serialize<S: Serializer>(addition: &StateAddition, serializer: S) -> Result<S::Ok, S::Error> {
        Reached { addition }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateAddition, D::Error> {
        Reached::deserialize(deserializer).map(|Reached { addition }| addition)
    }
}

/// Serializes a step. Its messages retain fields of later versions.
mod step {
    use super::{
        AgentStep, Deserialize as _, Deserializer, Serialize as _, Serializer, Value, de, read_message, ser,
        write_message,
    };

    /// The field of a step with the messages that it produced.
    const MESSAGES: &str = "output_messages";

    pub(super) fn serialize<S: Serializer>(step: &AgentStep, serializer: S) -> Result<S::Ok, S::Error> {
        if step.output_messages.iter().all(|message| message.unread.is_empty()) {
            return step.serialize(serializer);
        }
        write(step).map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<AgentStep>, D::Error> {
        let step = read(&Value::deserialize(deserializer)?);
        step.map(Box::new).map_err(de::Error::custom)
    }

    fn write(step: &AgentStep) -> Result<Value, serde_json::Error> {
        let mut written = serde_json::to_value(step)?;
        let messages = step.output_messages.iter().map(|message| write_message(message));
        written[MESSAGES] = Value::Array(messages.collect::<Result<_, _>>()?);
        Ok(written)
    }

    fn read(stored: &Value) -> Result<AgentStep, serde_json::Error> {
        let step = AgentStep::deserialize(stored)?;
        let messages = stored[MESSAGES].as_array().into_iter().flatten();
        Ok(AgentStep {
            output_messages: messages.map(read_message).collect::<Result<_, _>>()?,
            ..step
        })
    }
}
