//! The session that a request continues: that of an earlier response, or that of a conversation.

use std::collections::BTreeSet;

use super::references::approvals_of;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::response_id;
use crate::http::faces::openai::request::{Arranged, Given, Verdict, answers_to, no_previous};
use crate::http::problem::Problem;
use crate::run::RunRequest;
use crate::run::read::run_lookup;
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
        let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
        let RunRecord {
            summary, open_calls, ..
        } = run.ok_or_else(|| no_previous(&response_id(run_id)))?;
        if summary.has_session() {
            return Ok(Self {
                session_id: Some(summary.session_id),
                run_id: Some(run_id),
                open_calls,
            });
        }
        Err(match summary.status {
            RunStatus::Queued | RunStatus::Running => unusable(run_id, "can't be continued before it has ended"),
            RunStatus::Failed => unusable(run_id, "can't be continued, since it failed"),
            RunStatus::Cancelled => unusable(run_id, "can't be continued, since it was cancelled"),
            // It was made with `store: false`.
            _ => no_previous(&response_id(run_id)),
        })
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
