//! Payloads of runs that have not ended, as JSON: requests, journal entries, events and messages to
//! runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::messages::{read_message, write_message};
use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, open_payload};
use super::{EVENTS_VERSION, JOURNAL_VERSION, REQUEST_VERSION, STEERING_VERSION};
use crate::agent::JournalEntry;
use crate::agent::hooks::ToolUse;
use crate::agent::state::{AgentStep, StateAddition, ToolExecution};
use crate::clock::Timestamp;
use crate::ids::{AgentId, SessionId};
use crate::json::Value;
use crate::message::Message;
use crate::record::RunEvent;
use crate::session::Hash;

/// An entry as it is stored. Steps and additions are values, since they hold what this version
/// can't read.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredEntry {
    SubagentBegun {
        session_id: SessionId,
        agent_id: AgentId,
        agent_version: Hash,
    },
    Reached {
        addition: Value,
    },
    Answered {
        step: Value,
        started_at: Timestamp,
        addition: Value,
    },
    CallDecided {
        place: usize,
        tool_use: ToolUse,
        addition: Value,
    },
    CallBegun {
        place: usize,
    },
    CallEnded {
        place: usize,
        execution: Box<ToolExecution>,
        addition: Value,
    },
}

/// Encodes an entry of a journal.
pub(crate) fn encode_journal_entry(entry: &JournalEntry) -> Result<Payload, EncodeError> {
    let bytes = write_entry(entry).and_then(|stored| serde_json::to_vec(&stored));
    Payload::encode(JOURNAL_VERSION, bytes.map_err(EncodeError::Json)?)
}

/// Decodes an entry of a journal.
pub(crate) fn decode_journal_entry(stored: StoredPayload<'_>) -> Result<JournalEntry, DecodeError> {
    let bytes = open_payload(stored, JOURNAL_VERSION)?;
    let stored = serde_json::from_slice(&bytes).map_err(DecodeError::Json)?;
    read_entry(stored)
}

/// Encodes events that follow on each other.
pub(crate) fn encode_events(events: &[Arc<RunEvent>]) -> Result<Payload, EncodeError> {
    let bytes = serde_json::to_vec(events).map_err(EncodeError::Json)?;
    Payload::encode(EVENTS_VERSION, bytes)
}

/// Decodes events.
pub(crate) fn decode_events(stored: StoredPayload<'_>) -> Result<Vec<Arc<RunEvent>>, DecodeError> {
    let bytes = open_payload(stored, EVENTS_VERSION)?;
    serde_json::from_slice(&bytes).map_err(DecodeError::Json)
}

/// Encodes the request of a run: JSON as `QueuedRequest` writes it.
pub(crate) fn encode_request(request: &str) -> Result<Payload, EncodeError> {
    Payload::encode(REQUEST_VERSION, request.as_bytes().to_vec())
}

/// Wraps the request of a run without compressing it, for callers that need no row.
pub(crate) fn plain_request(request: String) -> Payload {
    Payload::plain(REQUEST_VERSION, request.into_bytes())
}

/// Decodes the request of a run.
pub(crate) fn decode_request(stored: StoredPayload<'_>) -> Result<String, DecodeError> {
    let bytes = open_payload(stored, REQUEST_VERSION)?.into_owned();
    String::from_utf8(bytes).map_err(|error| DecodeError::Text(error.utf8_error()))
}

/// Encodes a message to a run at work.
pub(crate) fn encode_steering(message: &Message) -> Result<Payload, EncodeError> {
    let bytes = write_message(message).and_then(|written| serde_json::to_vec(&written));
    Payload::encode(STEERING_VERSION, bytes.map_err(EncodeError::Json)?)
}

/// Decodes a message to a run at work.
pub(crate) fn decode_steering(stored: StoredPayload<'_>) -> Result<Message, DecodeError> {
    let bytes = open_payload(stored, STEERING_VERSION)?;
    let stored: Value = serde_json::from_slice(&bytes).map_err(DecodeError::Json)?;
    read_message(&stored).map(Arc::unwrap_or_clone)
}

fn write_entry(entry: &JournalEntry) -> Result<StoredEntry, serde_json::Error> {
    Ok(match entry {
        JournalEntry::SubagentBegun {
            session_id,
            agent_id,
            agent_version,
        } => StoredEntry::SubagentBegun {
            session_id: *session_id,
            agent_id: *agent_id,
            agent_version: *agent_version,
        },
        JournalEntry::Reached(addition) => StoredEntry::Reached {
            addition: addition.to_json()?,
        },
        JournalEntry::Answered {
            step,
            started_at,
            addition,
        } => StoredEntry::Answered {
            step: write_step(step)?,
            started_at: *started_at,
            addition: addition.to_json()?,
        },
        JournalEntry::CallDecided {
            place,
            tool_use,
            addition,
        } => StoredEntry::CallDecided {
            place: *place,
            tool_use: tool_use.clone(),
            addition: addition.to_json()?,
        },
        JournalEntry::CallBegun { place } => StoredEntry::CallBegun { place: *place },
        JournalEntry::CallEnded {
            place,
            execution,
            addition,
        } => StoredEntry::CallEnded {
            place: *place,
            execution: execution.clone(),
            addition: addition.to_json()?,
        },
    })
}

fn read_entry(stored: StoredEntry) -> Result<JournalEntry, DecodeError> {
    let addition = |stored| StateAddition::from_json(stored).map_err(DecodeError::Json);
    Ok(match stored {
        StoredEntry::SubagentBegun {
            session_id,
            agent_id,
            agent_version,
        } => JournalEntry::SubagentBegun {
            session_id,
            agent_id,
            agent_version,
        },
        StoredEntry::Reached { addition: stored } => JournalEntry::Reached(addition(stored)?),
        StoredEntry::Answered {
            step,
            started_at,
            addition: stored,
        } => JournalEntry::Answered {
            step: Box::new(read_step(&step)?),
            started_at,
            addition: addition(stored)?,
        },
        StoredEntry::CallDecided {
            place,
            tool_use,
            addition: stored,
        } => JournalEntry::CallDecided {
            place,
            tool_use,
            addition: addition(stored)?,
        },
        StoredEntry::CallBegun { place } => JournalEntry::CallBegun { place },
        StoredEntry::CallEnded {
            place,
            execution,
            addition: stored,
        } => JournalEntry::CallEnded {
            place,
            execution,
            addition: addition(stored)?,
        },
    })
}

/// Where a step has the messages that it produced.
const MESSAGES: &str = "output_messages";

fn write_step(step: &AgentStep) -> Result<Value, serde_json::Error> {
    let mut written = serde_json::to_value(step)?;
    let messages = step.output_messages.iter().map(|message| write_message(message));
    written[MESSAGES] = Value::Array(messages.collect::<Result<_, _>>()?);
    Ok(written)
}

fn read_step(stored: &Value) -> Result<AgentStep, DecodeError> {
    let step = AgentStep::deserialize(stored).map_err(DecodeError::Json)?;
    let messages = stored[MESSAGES].as_array().into_iter().flatten();
    Ok(AgentStep {
        output_messages: messages.map(read_message).collect::<Result<_, _>>()?,
        ..step
    })
}
