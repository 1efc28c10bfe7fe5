//! Rows of `runs`: the summary in lists, and the payloads beside it.

use uuid::Uuid;

use super::{RowName, StoredTime, from_row};
use crate::agent::state::StopReason;
use crate::ids::{RunId, SessionId};
use crate::model_ref::ParseModelRefError;
use crate::record::{ParseThreadNameError, RunRecord, RunSummary, StepRecord};
use crate::store::codec::{RUN_VERSION, StoredPayload, check_version, decode_output, decode_steps};
use crate::store::error::StoreError;
use crate::usage::{Cost, Usage};

/// A run without its payloads.
#[derive(Debug)]
pub(crate) struct RunSummaryRow {
    run_id: Uuid,
    session_id: Uuid,
    base_session_id: Option<Uuid>,
    agent: String,
    agent_version: Option<Vec<u8>>,
    model: String,
    mode: String,
    status: String,
    stop_reason: Option<String>,
    input_tokens: i64,
    output_tokens: i64,
    cache_read_tokens: i64,
    cache_write_tokens: i64,
    reasoning_tokens: i64,
    total_tokens: i64,
    cost: Option<f64>,
    step_count: i64,
    error: Option<String>,
    metadata: String,
    created_at: StoredTime,
    started_at: Option<StoredTime>,
    completed_at: Option<StoredTime>,
    schema_version: i16,
    event_count: i64,
    attempts: i32,
    durability: String,
    thread: Option<String>,
    thread_moved: Option<bool>,
    cost_known_part: Option<f64>,
    answered_by: Option<String>,
}

from_row!(RunSummaryRow {
    run_id,
    session_id,
    base_session_id,
    agent,
    agent_version,
    model,
    mode,
    status,
    stop_reason,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    reasoning_tokens,
    total_tokens,
    cost,
    step_count,
    error,
    metadata,
    created_at,
    started_at,
    completed_at,
    schema_version,
    event_count,
    attempts,
    durability,
    thread,
    thread_moved,
    cost_known_part,
    answered_by,
});

impl TryFrom<RunSummaryRow> for RunSummary {
    type Error = StoreError;

    fn try_from(row: RunSummaryRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.run_id);
        check_version(row.schema_version, RUN_VERSION).map_err(|error| name.undecodable("metadata", error))?;
        let agent_version = row
            .agent_version
            .as_deref()
            .map(|hash| name.hash("agent_version", hash))
            .transpose()?;
        let error = row.error.as_deref().map(serde_json::from_str).transpose();
        Ok(Self {
            run_id: RunId::from_uuid(row.run_id),
            session_id: SessionId::from_uuid(row.session_id),
            base_session_id: row.base_session_id.map(SessionId::from_uuid),
            usage: usage(&row, &name)?,
            agent_version,
            model: row.model.parse().map_err(|error| name.corrupt("model", error))?,
            answered_by: row
                .answered_by
                .map(|model| model.parse())
                .transpose()
                .map_err(|error: ParseModelRefError| name.corrupt("answered_by", error))?,
            mode: row.mode.parse().map_err(|error: String| name.corrupt("mode", error))?,
            status: row
                .status
                .parse()
                .map_err(|error: String| name.corrupt("status", error))?,
            stop_reason: row.stop_reason.as_deref().map(stop_reason),
            step_count: name.count("step_count", row.step_count)?,
            event_count: name.count("event_count", row.event_count)?,
            attempts: u32::try_from(row.attempts).map_err(|error| name.corrupt("attempts", error))?,
            durability: row
                .durability
                .parse()
                .map_err(|error: String| name.corrupt("durability", error))?,
            thread: row
                .thread
                .map(|thread| thread.parse())
                .transpose()
                .map_err(|error: ParseThreadNameError| name.corrupt("thread", error))?,
            thread_moved: row.thread_moved,
            error: error.map_err(|error| name.corrupt("error", error))?,
            metadata: serde_json::from_str(&row.metadata).map_err(|error| name.corrupt("metadata", error))?,
            created_at: row.created_at.0,
            started_at: row.started_at.map(|time| time.0),
            completed_at: row.completed_at.map(|time| time.0),
            agent: row.agent,
        })
    }
}

fn usage(row: &RunSummaryRow, name: &RowName) -> Result<Usage, StoreError> {
    let cost = |column, dollars: Option<f64>| {
        let read = dollars.map(|dollars| {
            Cost::from_dollars(dollars).ok_or_else(|| name.corrupt(column, format!("{dollars} dollars are no cost")))
        });
        read.transpose()
    };
    Ok(Usage {
        input_tokens: name.count("input_tokens", row.input_tokens)?,
        output_tokens: name.count("output_tokens", row.output_tokens)?,
        cache_read_tokens: name.count("cache_read_tokens", row.cache_read_tokens)?,
        cache_write_tokens: name.count("cache_write_tokens", row.cache_write_tokens)?,
        reasoning_tokens: name.count("reasoning_tokens", row.reasoning_tokens)?,
        total_tokens: name.count("total_tokens", row.total_tokens)?,
        cost: cost("cost", row.cost)?,
        cost_known_part: cost("cost_known_part", row.cost_known_part)?,
    })
}

/// A reason that a later version wrote reads as unknown, as it does in JSON.
fn stop_reason(text: &str) -> StopReason {
    let known = StopReason::ALL.into_iter().find(|reason| reason.as_str() == text);
    known.unwrap_or(StopReason::Unknown)
}

/// A run with its output.
#[derive(Debug)]
pub(crate) struct RunRecordRow {
    summary: RunSummaryRow,
    output: OutputRow,
}

#[derive(Debug)]
struct OutputRow {
    output_encoding: i16,
    output: Vec<u8>,
}

from_row!(OutputRow {
    output_encoding,
    output
});

from_row!(RunRecordRow { ; summary, output });

impl RunRecordRow {
    /// Returns the bytes of its output as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored().length()
    }

    fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.summary.schema_version,
            encoding: self.output.output_encoding,
            bytes: &self.output.output,
        }
    }
}

impl TryFrom<RunRecordRow> for RunRecord {
    type Error = StoreError;

    fn try_from(row: RunRecordRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.summary.run_id);
        let output = decode_output(row.stored()).map_err(|error| name.undecodable("output", error))?;
        Ok(Self {
            summary: row.summary.try_into()?,
            output: output.messages,
            value: output.value,
            stop_signal: output.stop_signal,
        })
    }
}

/// The steps of a run.
#[derive(Debug)]
pub(crate) struct StepsRow {
    run_id: Uuid,
    schema_version: i16,
    steps_encoding: i16,
    steps: Vec<u8>,
}

from_row!(StepsRow {
    run_id,
    schema_version,
    steps_encoding,
    steps
});

impl StepsRow {
    /// Returns the bytes of the steps as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored().length()
    }

    fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.steps_encoding,
            bytes: &self.steps,
        }
    }
}

impl TryFrom<StepsRow> for Vec<StepRecord> {
    type Error = StoreError;

    fn try_from(row: StepsRow) -> Result<Self, StoreError> {
        decode_steps(row.stored()).map_err(|error| RowName::new("runs", &row.run_id).undecodable("steps", error))
    }
}
