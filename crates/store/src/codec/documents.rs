//! JSON payloads of environments, outputs, steps and definitions. Each is encoded once, and the
//! hash covers the encoded bytes.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::payload::{DecodeError, EncodeError, Payload, StoredPayload, decode, open_payload};
use super::{DEFINITION_VERSION, ENVIRONMENT_VERSION, RUN_VERSION};
use agent::definition::AgentDefinition;
use agent::record::{RunRecord, RunStatus, StepRecord};
use agent::state::{FinishReason, StopSignal};
use values::json::{Object, Value, canonical_bytes, present};
use values::message::Message;
use values::session::{EnvironmentState, Hash, OpenCall, hash_definition, hash_environment};

/// The JSON of an output without anything.
const EMPTY_OUTPUT: &[u8] = b"{}";

/// The output of a run. `messages` is absent if the session of the run has them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StoredOutput {
    #[serde(default)]
    pub(crate) input: Arc<[Message]>,
    #[serde(default)]
    pub(crate) messages: Vec<Arc<Message>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) value: Option<Value>,
    /// Absent for the reason `stop` of a completed run, and for a run without a completion.
    #[serde(default)]
    pub(crate) finish_reason: Option<FinishReason>,
    #[serde(default)]
    pub(crate) stop_signal: Option<StopSignal>,
    #[serde(default)]
    pub(crate) open_calls: Vec<OpenCall>,
    #[serde(default)]
    pub(crate) echo: Option<Arc<Object>>,
}

#[derive(Serialize)]
struct OutputRef<'a> {
    #[serde(skip_serializing_if = "<[Message]>::is_empty")]
    input: &'a [Message],
    #[serde(skip_serializing_if = "<[Arc<Message>]>::is_empty")]
    messages: &'a [Arc<Message>],
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a FinishReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_signal: Option<&'a StopSignal>,
    #[serde(skip_serializing_if = "<[OpenCall]>::is_empty")]
    open_calls: &'a [OpenCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    echo: Option<&'a Object>,
}

/// Encodes the output of a run, with or without its messages. An output without anything takes no
/// bytes.
pub(crate) fn encode_output(record: &RunRecord, has_messages: bool) -> Result<Payload, EncodeError> {
    let is_usual =
        |reason: &&FinishReason| record.summary.status == RunStatus::Completed && **reason == FinishReason::Stop;
    let output = OutputRef {
        input: &record.input,
        messages: if has_messages { &record.output } else { &[] },
        value: record.value.as_ref(),
        finish_reason: record.finish_reason.as_ref().filter(|reason| !is_usual(reason)),
        stop_signal: record.stop_signal.as_ref(),
        open_calls: &record.open_calls,
        echo: record.echo.as_deref(),
    };
    let bytes = serde_json::to_vec(&output).map_err(EncodeError::Json)?;
    Payload::encode(RUN_VERSION, if bytes == EMPTY_OUTPUT { Vec::new() } else { bytes })
}

/// Decodes the output of a run.
pub(crate) fn decode_output(stored: StoredPayload<'_>) -> Result<StoredOutput, DecodeError> {
    let bytes = open_payload(stored, RUN_VERSION)?;
    if bytes.is_empty() {
        return Ok(StoredOutput::default());
    }
    serde_json::from_slice(&bytes).map_err(DecodeError::Json)
}

/// Encodes the steps of a run.
pub(crate) fn encode_steps(steps: &[StepRecord]) -> Result<Payload, EncodeError> {
    let bytes = serde_json::to_vec(steps).map_err(EncodeError::Json)?;
    Payload::encode(RUN_VERSION, bytes)
}

/// Decodes the steps of a run with these indexes, and counts all. Leaves out indexes that the run
/// does not have.
pub(crate) fn decode_steps(
    stored: StoredPayload<'_>,
    indexes: &Range<u64>,
) -> Result<(Vec<StepRecord>, u64), DecodeError> {
    let bytes = open_payload(stored, RUN_VERSION)?;
    let all: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(DecodeError::Json)?;
    let index = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(all.len());
    let asked = all.get(index(indexes.start)..index(indexes.end)).unwrap_or_default();
    let steps = asked.iter().map(|step| serde_json::from_str(step.get()));
    let steps: Result<_, _> = steps.collect();
    Ok((steps.map_err(DecodeError::Json)?, all.len() as u64))
}

/// Encodes an environment and computes the hash that addresses it.
pub(crate) fn encode_environment(environment: &EnvironmentState) -> Result<(Hash, Payload), EncodeError> {
    encode_canonical(environment, hash_environment, ENVIRONMENT_VERSION)
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
    decode(stored, ENVIRONMENT_VERSION)
}

fn encode_canonical<T: Serialize>(
    value: &T,
    hash: fn(&[u8]) -> Hash,
    version: i16,
) -> Result<(Hash, Payload), EncodeError> {
    let bytes = canonical_bytes(value).map_err(EncodeError::Json)?;
    Ok((hash(&bytes), Payload::encode(version, bytes)?))
}
