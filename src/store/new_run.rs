//! The record of a run, encoded for its row, and its bindings. No SQL.

use uuid::Uuid;

use super::codec::{EncodeError, Payload, encode_output, encode_steps};
use super::rows::{StoredTime, stored_count};
use super::sql::Statement;
use crate::record::{RunRecord, StepRecord};

/// The values of a row of `runs`.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) run_id: Uuid,
    pub(crate) session_id: Uuid,
    pub(crate) base_session_id: Option<Uuid>,
    pub(crate) agent: String,
    pub(crate) agent_version: Option<Vec<u8>>,
    pub(crate) model: String,
    pub(crate) mode: &'static str,
    pub(crate) status: &'static str,
    pub(crate) stop_reason: Option<&'static str>,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) cache_read_tokens: i64,
    pub(crate) cache_write_tokens: i64,
    pub(crate) reasoning_tokens: i64,
    pub(crate) total_tokens: i64,
    pub(crate) cost: Option<f64>,
    pub(crate) step_count: i64,
    pub(crate) error: Option<String>,
    pub(crate) metadata: String,
    pub(crate) created_at: StoredTime,
    pub(crate) started_at: Option<StoredTime>,
    pub(crate) completed_at: Option<StoredTime>,
    pub(crate) output: Payload,
    pub(crate) steps: Payload,
    pub(crate) event_count: i64,
    pub(crate) attempts: i32,
    pub(crate) durability: &'static str,
    pub(crate) thread: Option<String>,
    pub(crate) cost_known_part: Option<f64>,
    pub(crate) answered_by: Option<String>,
}

impl NewRun {
    /// Encodes a record and its steps.
    pub(crate) fn new(record: &RunRecord, steps: &[StepRecord]) -> Result<Self, EncodeError> {
        let run = &record.summary;
        let error = run.error.as_ref().map(serde_json::to_string).transpose();
        Ok(Self {
            run_id: run.run_id.as_uuid(),
            session_id: run.session_id.as_uuid(),
            base_session_id: run.base_session_id.map(crate::ids::SessionId::as_uuid),
            agent: run.agent.clone(),
            agent_version: run.agent_version.map(|version| version.as_bytes().to_vec()),
            model: run.model.to_string(),
            mode: run.mode.as_str(),
            status: run.status.as_str(),
            stop_reason: run.stop_reason.map(crate::agent::state::StopReason::as_str),
            input_tokens: stored_count(run.usage.input_tokens),
            output_tokens: stored_count(run.usage.output_tokens),
            cache_read_tokens: stored_count(run.usage.cache_read_tokens),
            cache_write_tokens: stored_count(run.usage.cache_write_tokens),
            reasoning_tokens: stored_count(run.usage.reasoning_tokens),
            total_tokens: stored_count(run.usage.total_tokens),
            cost: run.usage.cost.map(crate::usage::Cost::dollars),
            step_count: stored_count(run.step_count),
            error: error.map_err(EncodeError::Json)?,
            metadata: serde_json::to_string(&run.metadata).map_err(EncodeError::Json)?,
            created_at: StoredTime(run.created_at),
            started_at: run.started_at.map(StoredTime),
            completed_at: run.completed_at.map(StoredTime),
            output: encode_output(record)?,
            steps: encode_steps(steps)?,
            event_count: stored_count(run.event_count),
            attempts: i32::try_from(run.attempts).unwrap_or(i32::MAX),
            durability: run.durability.as_str(),
            thread: run.thread.as_ref().map(|thread| thread.as_str().to_owned()),
            cost_known_part: run.usage.cost_known_part.map(crate::usage::Cost::dollars),
            answered_by: run.answered_by.as_ref().map(ToString::to_string),
        })
    }
}

impl<'v> Statement<'v> {
    /// Binds the values of a run, or nulls, in the order of the columns of its insert statement.
    pub(crate) fn bind_run(self, run: Option<&'v NewRun>) -> Self {
        self.bind(run.map(|run| run.run_id))
            .bind(run.map(|run| run.session_id))
            .bind(run.and_then(|run| run.base_session_id))
            .bind(run.map(|run| run.agent.as_str()))
            .bind(run.and_then(|run| run.agent_version.as_deref()))
            .bind(run.map(|run| run.model.as_str()))
            .bind(run.map(|run| run.mode))
            .bind(run.map(|run| run.status))
            .bind(run.and_then(|run| run.stop_reason))
            .bind(run.map(|run| run.input_tokens))
            .bind(run.map(|run| run.output_tokens))
            .bind(run.map(|run| run.cache_read_tokens))
            .bind(run.map(|run| run.cache_write_tokens))
            .bind(run.map(|run| run.reasoning_tokens))
            .bind(run.map(|run| run.total_tokens))
            .bind(run.and_then(|run| run.cost))
            .bind(run.map(|run| run.step_count))
            .bind(run.and_then(|run| run.error.as_deref()))
            .bind(run.map(|run| run.metadata.as_str()))
            .bind(run.map(|run| run.created_at))
            .bind(run.and_then(|run| run.started_at))
            .bind(run.and_then(|run| run.completed_at))
            .bind(run.map(|run| run.output.schema_version))
            .bind(run.map(|run| run.output.encoding))
            .bind(run.map(|run| run.steps.encoding))
            .bind(run.map(|run| run.output.bytes.as_slice()))
            .bind(run.map(|run| run.steps.bytes.as_slice()))
            .bind(run.map(|run| run.event_count))
            .bind(run.map(|run| run.attempts))
            .bind(run.map(|run| run.durability))
            .bind(run.and_then(|run| run.thread.as_deref()))
            .bind(run.and_then(|run| run.cost_known_part))
            .bind(run.and_then(|run| run.answered_by.as_deref()))
    }

    /// Binds the three columns of a payload, or nulls.
    pub(crate) fn bind_payload(self, payload: Option<&'v Payload>) -> Self {
        self.bind(payload.map(|payload| payload.schema_version))
            .bind(payload.map(|payload| payload.encoding))
            .bind(payload.map(|payload| payload.bytes.as_slice()))
    }
}
