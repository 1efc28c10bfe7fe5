//! Rows of `runs`: the columns that lists show, and separately the payloads.

use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::{PayloadSizeRow, Row, RowName, StoredTime, Value, row, stored_count, table_row, written_row};
use crate::codec::{
    EncodeError, MessagePart, RUN_VERSION, StoredPayload, StoredSegment, check_version, decode_output, decode_steps,
    encode_output, encode_steps,
};
use crate::error::StoreError;
use crate::runs::StepPage;
use agent::record::{RunRecord, RunStatus, RunSummary, StepRecord};
use agent::state::FinishReason;
use values::ids::{RunId, SessionId};
use values::message::Message;
use values::session::{OpenCall, OpenCallKind};
use values::usage::{Cost, Usage};

table_row! {
    columns of "r";
    /// A run without its payloads.
    #[derive(Debug)]
    pub(crate) struct RunRow {
        pub(crate) run_id: Uuid,
        pub(crate) session_id: Uuid,
        pub(crate) base_session_id: Option<Uuid>,
        agent: String,
        agent_version: Option<Vec<u8>>,
        model: String,
        mode: String,
        pub(crate) status: String,
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
        created_by: Option<String>,
        created_at: StoredTime,
        pub(crate) started_at: Option<StoredTime>,
        completed_at: Option<StoredTime>,
        schema_version: i16,
        event_count: i64,
        pub(crate) attempts: i32,
        durability: String,
        thread: Option<String>,
        /// Whether the run moved its thread when it ended.
        pub(crate) thread_moved: Option<bool>,
        cost_known_part: Option<f64>,
        answered_by: Option<String>,
        /// The run that has answered the open calls.
        answer_run_id: Option<Uuid>,
        publishes: bool,
    }
}

impl RunRow {
    fn new(run: &RunSummary) -> Result<Self, serde_json::Error> {
        Ok(Self {
            run_id: run.run_id.as_uuid(),
            session_id: run.session_id.as_uuid(),
            base_session_id: run.base_session_id.map(SessionId::as_uuid),
            agent: run.agent.clone(),
            agent_version: run.agent_version.map(|version| version.as_bytes().to_vec()),
            model: run.model.to_string(),
            mode: run.mode.as_str().to_owned(),
            status: run.status.as_str().to_owned(),
            stop_reason: run.stop_reason.map(|reason| reason.as_str().to_owned()),
            input_tokens: stored_count(run.usage.input_tokens),
            output_tokens: stored_count(run.usage.output_tokens),
            cache_read_tokens: stored_count(run.usage.cache_read_tokens),
            cache_write_tokens: stored_count(run.usage.cache_write_tokens),
            reasoning_tokens: stored_count(run.usage.reasoning_tokens),
            total_tokens: stored_count(run.usage.total_tokens),
            cost: run.usage.cost.map(Cost::dollars),
            step_count: stored_count(run.step_count),
            error: run.error.as_ref().map(serde_json::to_string).transpose()?,
            metadata: serde_json::to_string(&run.metadata)?,
            created_by: run.created_by.as_ref().map(serde_json::to_string).transpose()?,
            created_at: StoredTime(run.created_at),
            started_at: run.started_at.map(StoredTime),
            completed_at: run.completed_at.map(StoredTime),
            schema_version: RUN_VERSION,
            event_count: stored_count(run.event_count),
            attempts: i32::try_from(run.attempts).unwrap_or(i32::MAX),
            durability: run.durability.as_str().to_owned(),
            thread: run.thread.as_ref().map(|thread| thread.as_str().to_owned()),
            // Set by a commit that moves the thread.
            thread_moved: None,
            cost_known_part: run.usage.cost_known_part.map(Cost::dollars),
            answered_by: run.answered_by.as_ref().map(ToString::to_string),
            answer_run_id: run.answer_run_id.map(RunId::as_uuid),
            publishes: run.publishes,
        })
    }
}

impl TryFrom<RunRow> for RunSummary {
    type Error = StoreError;

    fn try_from(row: RunRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.run_id);
        check_version(row.schema_version, RUN_VERSION).map_err(|error| name.undecodable("metadata", error))?;
        let agent_version = row.agent_version.as_deref();
        let answered_by = row.answered_by.as_deref();
        let stop_reason = row.stop_reason.as_deref();
        let thread = row.thread.as_deref();
        Ok(Self {
            run_id: RunId::from_uuid(row.run_id),
            session_id: SessionId::from_uuid(row.session_id),
            base_session_id: row.base_session_id.map(SessionId::from_uuid),
            usage: usage(&row, &name)?,
            agent_version: agent_version.map(|hash| name.hash("agent_version", hash)).transpose()?,
            model: name.parse("model", &row.model)?,
            answered_by: answered_by.map(|model| name.parse("answered_by", model)).transpose()?,
            mode: name.parse("mode", &row.mode)?,
            status: name.parse("status", &row.status)?,
            answer_run_id: row.answer_run_id.map(RunId::from_uuid),
            // A reason of a later version is read as unknown.
            stop_reason: stop_reason
                .map(|reason| name.named("stop_reason", reason))
                .transpose()?,
            step_count: name.count("step_count", row.step_count)?,
            event_count: name.count("event_count", row.event_count)?,
            attempts: name.small_count("attempts", row.attempts)?,
            durability: name.parse("durability", &row.durability)?,
            thread: thread.map(|thread| name.parse("thread", thread)).transpose()?,
            thread_moved: row.thread_moved,
            publishes: row.publishes,
            error: row
                .error
                .as_deref()
                .map(|error| name.json("error", error))
                .transpose()?,
            metadata: name.json("metadata", &row.metadata)?,
            created_by: row
                .created_by
                .as_deref()
                .map(|creator| name.json("created_by", creator))
                .transpose()?,
            created_at: row.created_at.0,
            started_at: row.started_at.map(|time| time.0),
            completed_at: row.completed_at.map(|time| time.0),
            agent: row.agent,
        })
    }
}

fn usage(row: &RunRow, name: &RowName) -> Result<Usage, StoreError> {
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

/// An encoded run with its payloads.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) row: RunRow,
    payloads: PayloadsRow,
}

written_row! {
    #[derive(Debug)]
    struct PayloadsRow {
        output_encoding: i16,
        steps_encoding: i16,
        /// When the last of the open calls in `output` expires that a person answers.
        person_until: Option<StoredTime>,
        /// The same for the calls that the caller's program executes.
        client_until: Option<StoredTime>,
        /// How many of the last messages of the run's session are its output. `None` if `output`
        /// has the messages.
        output_messages: Option<i16>,
        output: Vec<u8>,
        steps: Vec<u8>,
    }
}

impl NewRun {
    /// Encodes a record and its steps. `output_messages` is how many of the last messages of the
    /// run's session are its output, if the record refers to them.
    pub(crate) fn new(
        record: &RunRecord,
        steps: &[StepRecord],
        output_messages: Option<i16>,
    ) -> Result<Self, EncodeError> {
        let (output, steps) = (encode_output(record, output_messages.is_none())?, encode_steps(steps)?);
        Ok(Self {
            row: RunRow::new(&record.summary).map_err(EncodeError::Json)?,
            payloads: PayloadsRow {
                output_encoding: output.encoding,
                steps_encoding: steps.encoding,
                person_until: last_expiry(&record.open_calls, |kind| kind != OpenCallKind::Client),
                client_until: last_expiry(&record.open_calls, |kind| kind == OpenCallKind::Client),
                output_messages,
                output: output.bytes,
                steps: steps.bytes,
            },
        })
    }

    /// Returns about how many bytes it sends to the database.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [Some(&self.row.metadata), self.row.error.as_ref()];
        let texts = texts.into_iter().flatten().map(String::len);
        self.payloads.output.len() + self.payloads.steps.len() + texts.sum::<usize>()
    }
}

/// Returns when the last open call of some kinds expires.
fn last_expiry(calls: &[OpenCall], is_wanted: impl Fn(OpenCallKind) -> bool) -> Option<StoredTime> {
    let wanted = calls.iter().filter(|call| is_wanted(call.kind));
    wanted.map(|call| call.expires_at).max().map(StoredTime)
}

impl Row for NewRun {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        self.row.visit(column);
        self.payloads.visit(column);
    }
}

row! {
    /// A run with its output.
    #[derive(Debug)]
    pub(crate) struct RunRecordRow {
        /// Whether the run is hidden; `None` for one that never was.
        hidden: Option<bool>,
        ;
        summary: RunRow,
        output: OutputRow,
    }
}

row! {
    /// The output, and the segment of the run's session if the output refers to its messages.
    #[derive(Debug)]
    struct OutputRow {
        output_encoding: i16,
        output: Vec<u8>,
        output_messages: Option<i16>,
        segment_messages: Option<i32>,
        segment_version: Option<i16>,
        segment_encoding: Option<i16>,
        segment_payload: Option<Vec<u8>>,
    }
}

impl RunRecordRow {
    /// Returns the bytes of its output as JSON, with the whole segment that it refers to.
    pub(crate) fn bytes(&self) -> u64 {
        let segment = self.output.segment();
        self.stored().length() + segment.map_or(0, |segment| segment.payload.length())
    }

    fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.summary.schema_version,
            encoding: self.output.output_encoding,
            bytes: &self.output.output,
        }
    }
}

impl OutputRow {
    fn segment(&self) -> Option<StoredSegment<'_>> {
        Some(StoredSegment {
            first_index: 0,
            message_count: self.segment_messages?.into(),
            payload: StoredPayload {
                schema_version: self.segment_version?,
                encoding: self.segment_encoding?,
                bytes: self.segment_payload.as_ref()?,
            },
        })
    }

    /// Returns the last messages of the segment, as many as the output has.
    fn messages_of_session(&self, count: i16, name: &RowName) -> Result<Vec<Arc<Message>>, StoreError> {
        const COLUMN: &str = "output_messages";
        let segment = self.segment();
        let segment = segment.ok_or_else(|| name.corrupt(COLUMN, "the session of the run has no segment"))?;
        let count = usize::try_from(count).map_err(|error| name.corrupt(COLUMN, error))?;
        let messages = segment.messages(MessagePart::Last(count));
        let messages = messages.map_err(|error| name.corrupt(COLUMN, error))?;
        if messages.len() < count {
            return Err(name.corrupt(COLUMN, "the session of the run has fewer messages"));
        }
        Ok(messages)
    }
}

impl TryFrom<RunRecordRow> for RunRecord {
    type Error = StoreError;

    fn try_from(row: RunRecordRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.summary.run_id);
        let stored = decode_output(row.stored()).map_err(|error| name.undecodable("output", error))?;
        let output = match row.output.output_messages {
            Some(count) => row.output.messages_of_session(count, &name)?,
            None => stored.messages,
        };
        let summary = RunSummary::try_from(row.summary)?;
        let usual = (summary.status == RunStatus::Completed).then_some(FinishReason::Stop);
        Ok(Self {
            finish_reason: stored.finish_reason.or(usual),
            summary,
            input: stored.input,
            output,
            value: stored.value,
            stop_signal: stored.stop_signal,
            open_calls: stored.open_calls,
            echo: stored.echo,
            is_hidden: row.hidden.unwrap_or_default(),
        })
    }
}

row! {
    /// A waiting run, and the size of its output.
    #[derive(Debug)]
    pub(crate) struct WaitingSizeRow {
        pub(crate) run_id: Uuid,
        ;
        pub(crate) size: PayloadSizeRow,
    }
}

row! {
    /// A waiting run with its output, which has the open calls.
    #[derive(Debug)]
    pub(crate) struct WaitingRunRow {
        output_encoding: i16,
        output: Vec<u8>,
        ;
        summary: RunRow,
    }
}

impl WaitingRunRow {
    /// Returns the bytes of the output as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored().length()
    }

    fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.summary.schema_version,
            encoding: self.output_encoding,
            bytes: &self.output,
        }
    }
}

impl TryFrom<WaitingRunRow> for RunRecord {
    type Error = StoreError;

    fn try_from(row: WaitingRunRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.summary.run_id);
        let stored = decode_output(row.stored()).map_err(|error| name.undecodable("output", error))?;
        Ok(Self {
            open_calls: stored.open_calls,
            ..Self::without_output(row.summary.try_into()?)
        })
    }
}

row! {
    /// The steps of a run.
    #[derive(Debug)]
    pub(crate) struct StepsRow {
        run_id: Uuid,
        schema_version: i16,
        steps_encoding: i16,
        steps: Vec<u8>,
    }
}

impl StepsRow {
    /// Returns the bytes of the steps as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored().length()
    }

    /// Decodes the steps with these indexes.
    pub(crate) fn decode(&self, indexes: &Range<u64>) -> Result<StepPage, StoreError> {
        let decoded = decode_steps(self.stored(), indexes);
        let (steps, total) = decoded.map_err(|error| RowName::new("runs", &self.run_id).undecodable("steps", error))?;
        Ok(StepPage { steps, total })
    }

    fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.steps_encoding,
            bytes: &self.steps,
        }
    }
}
