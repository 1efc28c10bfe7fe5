//! The record of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::creator::Creator;
use super::named::named_values;
use super::thread::ThreadName;
use crate::definition::Durability;
use crate::state::{FinishReason, StopReason, StopSignal};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::{Object, Value, is_yes, yes};
use values::message::{Message, joined_text};
use values::model_ref::ModelRef;
use values::session::{Hash, OpenCall, RunOutcome};
use values::usage::Usage;

named_values! {
    /// The status of a run.
    RunStatus {
        /// Waits for a worker.
        Queued = "queued",
        /// Works.
        Running = "running",
        /// Ended with calls that wait for answers of the caller; its session is committed.
        Waiting = "waiting",
        /// Ended like `waiting`; since then, another run has answered its calls.
        Answered = "answered",
        /// Ended with its work done; its session is committed.
        Completed = "completed",
        /// Ended before its work was done; its session is committed.
        Stopped = "stopped",
        /// Ended by an error; there is no session.
        Failed = "failed",
        /// Ended by the caller; there is no session.
        Cancelled = "cancelled",
    }
}

named_values! {
    /// The ways in which a caller follows a run.
    RunMode {
        /// Waits for the result.
        Sync = "sync",
        /// Reads events.
        Stream = "stream",
        /// Reads the result later.
        Async = "async",
    }
}

named_values! {
    /// The phase in which a run failed.
    RunPhase {
        /// Reading the base session or restoring its environment.
        Load = "load",
        /// The agent loop: a model, a tool, a hook.
        Execute = "execute",
        /// Exporting the states or publishing the session.
        Commit = "commit",
    }
}

impl RunStatus {
    /// Returns whether the status is final.
    pub fn is_terminal(self) -> bool {
        self.has_session() || matches!(self, Self::Failed | Self::Cancelled)
    }

    /// Returns whether a run of this status has published its session.
    pub fn has_session(self) -> bool {
        self.outcome().is_some()
    }

    /// Returns the outcome that the session of a run of this status has; none without a session.
    pub fn outcome(self) -> Option<RunOutcome> {
        match self {
            Self::Completed => Some(RunOutcome::Completed),
            Self::Stopped => Some(RunOutcome::Stopped),
            Self::Waiting | Self::Answered => Some(RunOutcome::Waiting),
            Self::Queued | Self::Running | Self::Failed | Self::Cancelled => None,
        }
    }
}

/// The error that failed a run, in words that the caller may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunError {
    /// A stable code, such as `model_overloaded`.
    pub code: String,
    /// The message; never with a secret.
    pub message: String,
    /// The phase that failed.
    pub phase: RunPhase,
    /// The run that continued the base first, if the caller wanted no fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicting_run_id: Option<RunId>,
}

/// A run without its output, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Names the run.
    pub run_id: RunId,
    /// The session that it publishes; readable once the run has completed or stopped.
    pub session_id: SessionId,
    /// Whether it publishes its session. Otherwise its stored record has no output.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub publishes: bool,
    /// The session that it continues.
    pub base_session_id: Option<SessionId>,
    /// The agent's name.
    pub agent: String,
    /// The version of the agent's definition.
    pub agent_version: Option<Hash>,
    /// The model that is asked first.
    pub model: ModelRef,
    /// The model of the chain that answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<ModelRef>,
    /// The way in which the caller follows it.
    pub mode: RunMode,
    /// The durability of the run.
    #[serde(default)]
    pub durability: Durability,
    /// The thread that it continues and moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadName>,
    /// Whether the run moved its thread to its session when it ended; absent if it does not move a
    /// thread or has no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_moved: Option<bool>,
    /// The number of attempts.
    #[serde(default)]
    pub attempts: u32,
    /// The status.
    pub status: RunStatus,
    /// The run that has answered its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_run_id: Option<RunId>,
    /// The reason of the end.
    pub stop_reason: Option<StopReason>,
    /// The usage, also of a run that failed.
    pub usage: Usage,
    /// The number of completed steps.
    pub step_count: u64,
    /// The number of its last event, once it has ended.
    #[serde(default)]
    pub event_count: u64,
    /// The error, if it failed.
    pub error: Option<RunError>,
    /// The caller's key-value pairs.
    pub metadata: Object,
    /// Who started it; `None` while requests needed no credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Creator>,
    /// When it was accepted.
    #[serde(serialize_with = "values::clock::write_time")]
    pub created_at: Timestamp,
    /// When its work began.
    #[serde(serialize_with = "values::clock::write_some_time")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "values::clock::write_some_time")]
    pub completed_at: Option<Timestamp>,
}

/// A run with its output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// All but the input and the output.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The messages of the request of a run that has ended without a session, which would have
    /// them. None if the run publishes nothing, if its agent has hooks, or if its request can't be
    /// read.
    #[serde(default, skip_serializing_if = "<[Message]>::is_empty")]
    pub input: Arc<[Message]>,
    /// The messages of the final step.
    pub output: Vec<Arc<Message>>,
    /// The value of the final response, if the response matches its response format.
    #[serde(default)]
    pub value: Option<Value>,
    /// The reason of the end of the last completion; `None` as long as there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The signal that ended its execution; `None` if no signal did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<StopSignal>,
    /// The calls that wait for answers of the caller, if the run ended because of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<OpenCall>,
    /// The request as its caller wrote it, if the interface that the caller uses returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Arc<Object>>,
    /// Whether its caller has deleted the response that an interface made of it. A run is hidden
    /// after its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
}

impl RunSummary {
    /// Returns whether the run has published its session.
    pub fn has_session(&self) -> bool {
        self.publishes && self.status.has_session()
    }

    /// Returns the thread that the run moved to its session when it ended.
    pub fn moved_thread(&self) -> Option<&ThreadName> {
        self.thread.as_ref().filter(|_| self.thread_moved == Some(true))
    }

    /// Records when the work began, never before the run was accepted. Clocks of machines differ
    /// and may be set back.
    pub fn begin(&mut self, at: Timestamp) {
        self.started_at = Some(at.max(self.created_at));
    }

    /// Returns when the run ended, or when it was created if it has not ended.
    pub fn ended_at(&self) -> Timestamp {
        self.completed_at.unwrap_or(self.created_at)
    }

    /// Records when the run ended, never before it began.
    pub fn end(&mut self, at: Timestamp) {
        self.completed_at = Some(at.max(self.started_at.unwrap_or(self.created_at)));
    }
}

impl RunRecord {
    /// Creates the record of a run without output.
    pub fn without_output(summary: RunSummary) -> Self {
        Self {
            summary,
            input: Arc::default(),
            output: Vec::new(),
            value: None,
            finish_reason: None,
            stop_signal: None,
            open_calls: Vec::new(),
            echo: None,
            is_hidden: false,
        }
    }

    /// Returns the record without messages and calls. Metadata, the error and the stop signal stay.
    #[must_use]
    pub fn without_contents(self) -> Self {
        Self {
            finish_reason: self.finish_reason,
            stop_signal: self.stop_signal,
            ..Self::without_output(self.summary)
        }
    }

    /// Returns the record as it was when the run ended. Answers that came later change its status.
    #[must_use]
    pub fn as_it_ended(&self) -> Self {
        let mut ended = self.clone();
        if ended.summary.status == RunStatus::Answered {
            ended.summary.status = RunStatus::Waiting;
            ended.summary.answer_run_id = None;
        }
        ended
    }

    /// Returns the text of the final step.
    pub fn output_text(&self) -> String {
        self.output
            .iter()
            .map(|message| joined_text(&message.content))
            .collect()
    }
}
