//! The session that a request continues: that of an earlier response, or that of a conversation.

use std::collections::BTreeSet;

use super::finished::stored_run;
use super::references::approvals_of;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::response_id;
use crate::http::faces::openai::request::{
    Arranged, Given, Item, Verdict, after_request, answers_to, decided_run, no_previous,
};
use crate::http::faces::openai::response::is_cut;
use crate::http::problem::Problem;
use crate::run::RunRequest;
use agent::answers::Answers;
use agent::record::{RunRecord, RunStatus, ThreadName};
use values::ids::{RunId, SessionId};
use values::session::OpenCall;

/// The session that a request continues.
#[derive(Debug, Default)]
pub(super) struct Base {
    /// `None` for a new conversation.
    session_id: Option<SessionId>,
    /// The run that left the calls open.
    run_id: Option<RunId>,
    /// The calls that wait for answers.
    open_calls: Vec<OpenCall>,
}

impl Base {
    /// Finds the session of an earlier response. It must have ended with a session.
    pub(super) async fn of_response(call: &Call, run_id: RunId) -> Result<Self, Problem> {
        let run = stored_run(call, run_id).await?;
        let run = run.ok_or_else(|| no_previous(&response_id(run_id)))?;
        if run.summary.has_session() {
            return Ok(Self::left_by(run));
        }
        Err(match run.summary.status {
            RunStatus::Queued | RunStatus::Running => unusable(run_id, "can't be continued before it has ended"),
            RunStatus::Failed if is_cut(&run) => unusable(
                run_id,
                "can't be continued, since its output was cut before it was valid JSON",
            ),
            RunStatus::Failed => unusable(run_id, "can't be continued, since it failed"),
            RunStatus::Cancelled => unusable(run_id, "can't be continued, since it was cancelled"),
            // Each other status comes with a session.
            _ => no_previous(&response_id(run_id)),
        })
    }

    /// Finds the session of the run that has left open the calls about which the input decides, for
    /// a request that names no base. Removes the items that the session has. A repetition finds
    /// them answered, and answers them in another branch.
    pub(super) async fn of_decisions(call: &Call, items: &mut Vec<(usize, Item)>) -> Result<Self, Problem> {
        let run = match decided_run(items) {
            Some(run_id) => stored_run(call, run_id).await?,
            None => None,
        };
        let asks = |run: &RunRecord| matches!(run.summary.status, RunStatus::Waiting | RunStatus::Answered);
        let Some(run) = run.filter(asks) else {
            return Ok(Self::default());
        };
        let base = Self::left_by(run);
        after_request(items, &base.open_ids());
        Ok(base)
    }

    /// Returns the session that a run has published.
    fn left_by(run: RunRecord) -> Self {
        Self {
            session_id: Some(run.summary.session_id),
            run_id: Some(run.summary.run_id),
            open_calls: run.open_calls,
        }
    }

    /// Finds the session of a thread; `None` if there is no thread of this name.
    pub(super) async fn of_thread(call: &Call, name: &ThreadName) -> Result<Option<Self>, Problem> {
        let runs = &call.api.runs;
        let Some(thread) = runs.store.thread_lookup(&call.tenant, name).await? else {
            return Ok(None);
        };
        let Some(session_id) = thread.session_id else {
            return Ok(Some(Self::default()));
        };
        // The run needs the bundle, too, so it is read once.
        let bundle = runs.sessions.bundle(&call.tenant, session_id).await?;
        let waiting = bundle.as_ref().and_then(|bundle| bundle.waiting());
        Ok(Some(Self {
            session_id: Some(session_id),
            run_id: waiting.and_then(|waiting| waiting.run_id),
            open_calls: waiting.map_or_else(Vec::new, |waiting| waiting.open_calls.clone()),
        }))
    }

    /// Returns the session to continue.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        self.session_id
    }

    /// Returns whether there is a session to continue.
    pub(super) fn has_session(&self) -> bool {
        self.session_id.is_some()
    }

    /// Returns the ids of the calls that wait for answers.
    pub(super) fn open_ids(&self) -> BTreeSet<&str> {
        self.open_calls.iter().map(|open| open.call_id.as_str()).collect()
    }

    /// Adds the input and the answers to a request, which continues the session or its thread.
    /// `field` is the name of the list with the input.
    pub(super) async fn continued_by(
        self,
        call: &Call,
        arranged: Arranged,
        field: &str,
        request: RunRequest,
    ) -> Result<RunRequest, Problem> {
        let mut given = Given {
            outputs: arranged.outputs,
            may_skip: request.thread.is_some() && !arranged.messages.is_empty(),
            ..Given::default()
        };
        if !arranged.decisions.is_empty() {
            let approvals = approvals_of(call, self.run_id).await?;
            for decision in arranged.decisions {
                let call_id = approvals.get(&decision.request_id).ok_or_else(|| {
                    let pointer = format!("/{field}/{}/approval_request_id", decision.index);
                    Problem::invalid_field(pointer, "no open call has this approval request")
                })?;
                let verdict = Verdict {
                    approves: decision.approves,
                    reason: decision.reason,
                };
                given.verdicts.insert(call_id.clone(), verdict);
            }
        }
        let now = call.api.runs.clock.now();
        let answers = Answers {
            // Two requests may continue the same response, each in a branch.
            is_fork: request.thread.is_none(),
            ..answers_to(&self.open_calls, given, field, now)?
        };
        // A thread must still point to the session whose calls are answered.
        let needs_session = request.thread.is_none() || !answers.is_empty();
        Ok(RunRequest {
            base_session_id: self.session_id.filter(|_| needs_session),
            input: arranged.messages,
            answers,
            ..request
        })
    }
}

fn unusable(run_id: RunId, why: &str) -> Problem {
    let words = format!("The previous response '{}' {why}.", response_id(run_id));
    Problem::new(ProblemCode::PreviousResponseNotFound, words)
}
