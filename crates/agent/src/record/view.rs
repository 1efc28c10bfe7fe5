//! Runs as callers see them, in responses, events and webhooks. Data only.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::creator::Creator;
use super::required_action::RequiredActionView;
use super::run::{RunError, RunMode, RunRecord, RunStatus, RunSummary};
use super::thread::ThreadName;
use crate::definition::Durability;
use crate::state::{FinishReason, StopReason, StopSignal};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::{Object, Value};
use values::message::Message;
use values::model_ref::ModelRef;
use values::session::Hash;
use values::usage::Usage;

/// A run without its output.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub struct RunSummaryView {
    /// Names the run.
    run_id: RunId,
    /// The session that the run publishes; null if it publishes none. The id is reserved from the
    /// start; the session is readable once the run is `completed`, `stopped` or `waiting`.
    session_id: Option<SessionId>,
    /// The session that the run continues.
    base_session_id: Option<SessionId>,
    /// The name of the agent.
    agent: String,
    /// The version of the agent's definition that the run uses.
    agent_version: Option<Hash>,
    /// The model that is asked first.
    model: ModelRef,
    /// The model of the agent's chain that responded last; null as long as none has.
    answered_by: Option<ModelRef>,
    /// The mode of the request.
    mode: RunMode,
    /// The part of the run that survives the loss of its worker.
    durability: Durability,
    /// The thread that the run continues and moves.
    thread: Option<ThreadName>,
    /// Whether the run moved its thread to its session when it ended. Null if it does not move a
    /// thread or has no session, and in messages to webhooks, which are written before the move.
    thread_moved: Option<bool>,
    /// How many times a worker has started the run: more than 1 after the loss of a worker.
    attempts: u32,
    /// The status of the run.
    status: RunStatus,
    /// The run that has answered its calls; null unless the run has the status `answered`.
    answer_run_id: Option<RunId>,
    /// Why the run ended.
    stop_reason: Option<StopReason>,
    /// Tokens and cost of all steps, also of a run that failed.
    usage: Usage,
    /// The number of steps that have ended, including a step that was cut.
    step_count: u64,
    /// The code, the message and the phase of the error of a failed run.
    error: Option<RunError>,
    /// The key-value pairs of the request.
    metadata: Object,
    /// Who started the run: the `key_id` of an API key, the `issuer`, `sub`, `azp` and `act` of a
    /// token, or the name of a client certificate as `certificate`. Null if the service needed no
    /// credentials.
    created_by: Option<Creator>,
    /// When the run was accepted.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    created_at: Timestamp,
    /// When the work of the run began.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    #[serde(serialize_with = "values::clock::write_some_time")]
    started_at: Option<Timestamp>,
    /// When the run ended.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    #[serde(serialize_with = "values::clock::write_some_time")]
    completed_at: Option<Timestamp>,
    /// How long the run worked, in milliseconds.
    duration_ms: Option<i64>,
}

/// A run with its output: the response of a synchronous run, and the last event of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    /// All but the input and the output.
    #[serde(flatten)]
    summary: RunSummaryView,
    /// The messages of the request of a run that failed or was cancelled; otherwise null, since the
    /// session of the run has them. Also null if the run publishes nothing, if its agent has hooks,
    /// which may remove what must not be stored, and if its request can't be read.
    input: Option<Arc<[Message]>>,
    /// The text of the final step.
    output_text: String,
    /// The messages of the final step.
    output: Vec<Arc<Message>>,
    /// The final output as a value, if the run has a `response_format` and the output fits it.
    output_value: Option<Value>,
    /// Why the last completion ended; null if there is none. `length` or `content_filter` means
    /// that the final response was cut.
    #[schema(value_type = Option<String>)]
    finish_reason: Option<FinishReason>,
    /// The signal that ended the execution: its reason, source and message, and figures in its
    /// context; null if no signal did.
    stop_signal: Option<StopSignalView>,
    /// The open calls of a run with the status `waiting`, and the answers to be filled in;
    /// otherwise null.
    required_action: Option<RequiredActionView>,
}

/// A signal that ended an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StopSignal)]
pub struct StopSignalView {
    /// The reason.
    reason: StopReason,
    /// The sender: `budget`, `cancellation`, `stop`, `record`, a hook or a tool.
    source: Option<String>,
    /// The reason in words.
    message: String,
    /// Figures that explain it, such as the limit that is reached.
    context: Object,
}

impl From<StopSignal> for StopSignalView {
    fn from(signal: StopSignal) -> Self {
        Self {
            reason: signal.reason,
            source: signal.source,
            message: signal.message,
            context: signal.context,
        }
    }
}

impl From<RunSummary> for RunSummaryView {
    fn from(run: RunSummary) -> Self {
        let worked = run.started_at.zip(run.completed_at).map(|(from, until)| until - from);
        Self {
            run_id: run.run_id,
            session_id: run.publishes.then_some(run.session_id),
            base_session_id: run.base_session_id,
            agent: run.agent,
            agent_version: run.agent_version,
            model: run.model,
            answered_by: run.answered_by,
            mode: run.mode,
            durability: run.durability,
            thread: run.thread,
            thread_moved: run.thread_moved,
            attempts: run.attempts,
            status: run.status,
            answer_run_id: run.answer_run_id,
            stop_reason: run.stop_reason,
            usage: run.usage,
            step_count: run.step_count,
            error: run.error,
            metadata: run.metadata,
            created_by: run.created_by,
            created_at: run.created_at,
            started_at: run.started_at,
            completed_at: run.completed_at,
            duration_ms: worked.map(|duration| duration.num_milliseconds()),
        }
    }
}

impl From<RunRecord> for RunView {
    fn from(run: RunRecord) -> Self {
        let is_waiting = run.summary.status == RunStatus::Waiting;
        Self {
            output_text: run.output_text(),
            required_action: is_waiting.then(|| RequiredActionView::new(&run.open_calls)).flatten(),
            summary: run.summary.into(),
            input: (!run.input.is_empty()).then_some(run.input),
            output: run.output,
            output_value: run.value,
            finish_reason: run.finish_reason,
            stop_signal: run.stop_signal.map(Into::into),
        }
    }
}
