//! The errors of the parts of a run.

use std::error::Error;

use crate::run::refusal::Refusal;
use agent::RunErrorCode;
use agent::hooks::HookConfigError;
use agent::ports::ToolSetError;
use agent::record::{RunError, RunPhase};
use agent::state::{AgentError, AgentState, ErrorKind, StopSignal};
use store::{CommitError, StoreError};
use values::ids::RunId;
use values::session::{OpenCall, PartTooLarge};
use workspace::environment::EnvironmentError;

/// Returns the error that ended a failed execution: the newest error that the deciding signal
/// names. If the signal names none, such as the signal of a webhook, the error is the signal's own
/// message. Errors after which the execution continued did not end it.
pub(in crate::run) fn execution_error(state: &AgentState) -> RunError {
    let signal = state.stop_signal();
    let is_deciding = |error: &&AgentError| {
        let is_of_hook = |signal: &StopSignal| error.kind == ErrorKind::Hook && error.source_name == signal.source;
        signal.is_some_and(|signal| error.message == signal.message || is_of_hook(signal))
    };
    let errors = state.errors();
    let error = errors.iter().rfind(is_deciding);
    let code = error.map_or(RunErrorCode::ExecutionFailed.as_str(), |error| error.code.as_str());
    let message = error
        .map(|error| &error.message)
        .or(signal.map(|signal| &signal.message));
    RunError {
        code: code.to_owned(),
        message: message.map_or_else(|| "the execution failed".to_owned(), Clone::clone),
        phase: RunPhase::Execute,
        conflicting_run_id: None,
    }
}

/// The failure of a part of a run. The caller reads the error. The details for the operator are
/// logged when the failure is created.
#[derive(Debug)]
pub(in crate::run) struct Failure {
    error: RunError,
}

impl Failure {
    /// The base session can't be read.
    pub(in crate::run) fn load(error: &StoreError) -> Self {
        let (code, message) = match error {
            StoreError::Unavailable { reason, .. } => {
                let message = format!("the base session can't be loaded: {reason}");
                return Self::logged(RunPhase::Load, RunErrorCode::StoreUnavailable, message, error);
            }
            StoreError::Corrupt { .. } => (
                RunErrorCode::SessionUnreadable,
                "the base session can't be loaded: what is stored of it can't be read",
            ),
            StoreError::Failed { .. } | StoreError::Schema { .. } | StoreError::TenantFull { .. } => {
                (RunErrorCode::StoreFailed, "the base session can't be loaded")
            }
        };
        Self::logged(RunPhase::Load, code, message, error)
    }

    /// A hook of the agent can no longer be created.
    pub(in crate::run) fn hooks(error: &HookConfigError) -> Self {
        Self::logged(RunPhase::Load, RunErrorCode::HooksNotMade, error.to_string(), error)
    }

    /// The agent's tools can't be created.
    pub(in crate::run) fn tools(error: &ToolSetError) -> Self {
        Self::logged(RunPhase::Load, RunErrorCode::ToolsNotMade, error.to_string(), error)
    }

    /// A queued run was accepted, but its agent, model or base can no longer be used.
    pub(in crate::run) fn refused(refusal: &Refusal) -> Self {
        // The session existed when the run was accepted.
        if let Refusal::UnknownSession { .. } | Refusal::SessionNotCommitted { .. } = refusal {
            return Self::base_removed(
                RunPhase::Load,
                "the session that the run continues, or whose environment it uses, was removed before it began",
            );
        }
        let code = match refusal {
            Refusal::SessionTooLarge(error) => return Self::too_large(RunPhase::Load, error),
            // On a thread, the session that the run continues is known only when the run begins.
            Refusal::AnswersRequired(_) => Some(RunErrorCode::AnswersRequired),
            Refusal::InvalidAnswers { .. } => Some(RunErrorCode::InvalidAnswers),
            Refusal::SessionNotWaiting { .. } | Refusal::ThreadMovedOn { .. } | Refusal::Answered { .. } => {
                Some(RunErrorCode::SessionNotWaiting)
            }
            _ => None,
        };
        if let Some(code) = code {
            return Self::new(RunPhase::Load, code, refusal.to_string());
        }
        Self::logged(
            RunPhase::Load,
            RunErrorCode::RequestUnusable,
            refusal.to_string(),
            refusal,
        )
    }

    /// The request of a queued run can't be read.
    pub(in crate::run) fn unusable(error: &(dyn Error + 'static)) -> Self {
        let message = "what was asked of the run can't be read";
        Self::logged(RunPhase::Load, RunErrorCode::RequestUnusable, message, error)
    }

    /// The stored progress of the run can't be read.
    pub(in crate::run) fn progress(error: &(dyn Error + 'static)) -> Self {
        let message = "the stored progress of the run can't be read";
        Self::logged(RunPhase::Load, RunErrorCode::ProgressUnreadable, message, error)
    }

    /// The run is poison: it has used up its attempts, and no worker has ended it.
    pub(in crate::run) fn exhausted(attempts: u32) -> Self {
        tracing::error!(attempts, "a poison run fails: no worker has ended it");
        let message = format!("{attempts} workers have begun the run, and none has ended it");
        Self::new(RunPhase::Execute, RunErrorCode::AttemptsExhausted, message)
    }

    /// An open call needs a decision or input, and the run publishes no session that an answer
    /// could continue.
    pub(in crate::run) fn undecided(call: &OpenCall) -> Self {
        let message = format!(
            "the tool {:?} needs an approval or input, and nothing of the run is stored that an answer could continue",
            call.tool
        );
        Self::new(RunPhase::Execute, RunErrorCode::AnswersRequired, message)
    }

    /// The environment can't be exported.
    pub(in crate::run) fn export(error: &EnvironmentError) -> Self {
        if let Some(message) = error.storage_limit() {
            return Self::logged(RunPhase::Commit, RunErrorCode::StorageQuotaExceeded, message, error);
        }
        Self::logged(
            RunPhase::Commit,
            RunErrorCode::EnvironmentNotExported,
            error.to_string(),
            error,
        )
    }

    /// The session can't be published.
    pub(in crate::run) fn commit(error: &CommitError) -> Self {
        let (code, message) = match error {
            CommitError::Conflict { run_id } => return Self::conflict(*run_id),
            CommitError::Store(StoreError::Unavailable { reason, .. }) => {
                let message =
                    format!("{reason}. Most likely the session is not published; read the run once the store is back");
                return Self::logged(RunPhase::Commit, RunErrorCode::StoreUnavailable, message, error);
            }
            CommitError::TooLarge(error) => return Self::too_large(RunPhase::Commit, error),
            CommitError::MissingBase => {
                let message = "a session that the run continues was removed while it worked";
                return Self::base_removed(RunPhase::Commit, message);
            }
            CommitError::MissingEnvironment => {
                let message = "the session whose environment the run uses was removed while it worked";
                return Self::base_removed(RunPhase::Commit, message);
            }
            // A run moves its thread from wherever it points.
            CommitError::ThreadMoved { .. }
            | CommitError::ThreadBusy { .. }
            | CommitError::Exists
            | CommitError::LeaseLost
            | CommitError::Store(_) => (RunErrorCode::StoreFailed, "the session can't be published"),
        };
        Self::logged(RunPhase::Commit, code, message, error)
    }

    /// The session would be larger than allowed.
    fn too_large(phase: RunPhase, error: &PartTooLarge) -> Self {
        Self::logged(phase, RunErrorCode::SessionTooLarge, error.to_string(), error)
    }

    /// The run's task panicked.
    pub(in crate::run) fn panicked() -> Self {
        let message = "the service met an internal error";
        Self::new(RunPhase::Execute, RunErrorCode::InternalError, message)
    }

    /// Returns the error for the caller.
    pub(in crate::run) fn into_error(self) -> RunError {
        self.error
    }

    fn base_removed(phase: RunPhase, message: &str) -> Self {
        Self::new(phase, RunErrorCode::BaseSessionRemoved, message)
    }

    fn conflict(run_id: Option<RunId>) -> Self {
        let message = "another run has continued the base session first";
        let mut failure = Self::new(RunPhase::Commit, RunErrorCode::BaseSessionConflict, message);
        failure.error.conflicting_run_id = run_id;
        failure
    }

    fn logged(phase: RunPhase, code: RunErrorCode, message: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        tracing::error!(%phase, code = code.as_str(), error, "a run fails");
        Self::new(phase, code, message)
    }

    fn new(phase: RunPhase, code: RunErrorCode, message: impl Into<String>) -> Self {
        Self {
            error: RunError {
                code: code.into(),
                message: message.into(),
                phase,
                conflicting_run_id: None,
            },
        }
    }
}
