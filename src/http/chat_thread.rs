//! The thread of a chat, with its runs and turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::auth::Call;
use super::faces::chat::{ChatEcho, EchoMessage};
use super::parameters::PathParameters;
use super::problem::Problem;
use crate::run::read::{RunMessages, is_input, run_list, run_lookup, run_messages};
use crate::run::{RequestKey, RunHandle, end_run, replay};
use agent::answers::open_step_id;
use agent::record::{RunControl, RunRecord, RunStatus, ThreadName};
use store::Page;
use store::runs::RunFilter;
use values::ids::{ExecutionId, RunId, SessionId, StepId};
use values::json::Value;
use values::message::{Message, Role};
use values::session::{Bundle, OpenCall};

/// The thread of a chat.
pub(super) struct ChatThread<'a> {
    pub(super) call: &'a Call,
    pub(super) name: ThreadName,
}

/// How a turn of the agent has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnEnd {
    /// Its id: that of its first run, if one is stored.
    pub(super) first_run: RunId,
    /// The session that it has published; `None` if it has failed or was cancelled.
    pub(super) session_id: Option<SessionId>,
}

impl TurnEnd {
    fn new(first_run: RunId, session_id: SessionId) -> Self {
        Self {
            first_run,
            session_id: Some(session_id),
        }
    }
}

impl<'a> ChatThread<'a> {
    pub(super) fn new(call: &'a Call, name: ThreadName) -> Self {
        Self { call, name }
    }

    /// Returns the thread that a parameter of a path names. No thread has a name that is not
    /// possible.
    pub(super) fn in_path(call: &'a Call, path: &PathParameters, parameter: &str) -> Option<Self> {
        let name = path.text(parameter).parse().ok()?;
        Some(Self { call, name })
    }

    /// Returns how many messages a request may add.
    pub(super) fn max_messages(&self) -> usize {
        self.call.api.limits.max_input_messages
    }

    /// Finds the newest run on the thread with one of some statuses, or with any.
    pub(super) async fn newest_run(&self, statuses: &[RunStatus]) -> Result<Option<RunRecord>, Problem> {
        let (runs, tenant) = (&self.call.api.runs, &self.call.tenant);
        let filter = RunFilter {
            statuses: statuses.to_vec(),
            thread: Some(self.name.clone()),
            ..RunFilter::default()
        };
        let newest = run_list(runs, tenant, &filter, Page { before: None, limit: 1 }).await?;
        match newest.first() {
            Some(run) => Ok(run_lookup(runs, tenant, run.run_id).await?),
            None => Ok(None),
        }
    }

    /// Finds the run that works on the thread or, if none does, the newest one in the queue.
    pub(super) async fn active_run(&self) -> Result<Option<RunRecord>, Problem> {
        let last = self.last_active_run().await?;
        if last.as_ref().is_none_or(|run| run.summary.status == RunStatus::Running) {
            return Ok(last);
        }
        let running = self.newest_run(&[RunStatus::Running]).await?;
        Ok(running.filter(|run| !run.summary.status.is_terminal()).or(last))
    }

    /// Finds the newest run that is at work or in the queue.
    pub(super) async fn last_active_run(&self) -> Result<Option<RunRecord>, Problem> {
        let active = self.newest_run(&[RunStatus::Queued, RunStatus::Running]).await?;
        Ok(active.filter(|run| !run.summary.status.is_terminal()))
    }

    /// Stops a run, and waits some seconds for its end. What it has done is published.
    pub(super) async fn stop(&self, run: &RunRecord) -> Result<(), Problem> {
        self.end(run, RunControl::Stop).await
    }

    /// Ends a run, and waits some seconds for its end.
    pub(super) async fn end(&self, run: &RunRecord, control: RunControl) -> Result<(), Problem> {
        let (runs, tenant) = (&self.call.api.runs, &self.call.tenant);
        let ended = end_run(runs, tenant, run.summary.run_id, control).await;
        ended.map(|_| ()).map_err(|refusal| self.call.problem(refusal))
    }

    /// Finds the run of an earlier request with a key.
    pub(super) async fn known_run(&self, key: &RequestKey) -> Result<Option<RunHandle>, Problem> {
        let known = replay(&self.call.api.runs, &self.call.tenant, key).await;
        known.map_err(|refusal| self.call.problem(refusal))
    }

    /// Returns the first run of the turn of a run, if an earlier run has begun it.
    pub(super) async fn turn_of(&self, run_id: RunId) -> Result<Option<RunId>, Problem> {
        let Some(run) = run_lookup(&self.call.api.runs, &self.call.tenant, run_id).await? else {
            return Ok(None);
        };
        let earlier = self.earlier_runs(&run).await?;
        Ok(earlier.first().map(|run| run.record.summary.run_id))
    }

    /// Returns the session that the thread points to.
    pub(super) async fn session_id(&self) -> Result<Option<SessionId>, Problem> {
        let store = &self.call.api.runs.store;
        let thread = store.thread_lookup(&self.call.tenant, &self.name).await?;
        Ok(thread.and_then(|thread| thread.session_id))
    }

    /// Returns whether a session belongs to the thread: a run on it has published the session, or
    /// the session to which it points continues it.
    pub(super) async fn has_session(&self, session_id: SessionId) -> Result<bool, Problem> {
        let (store, tenant) = (&self.call.api.runs.store, &self.call.tenant);
        let Some(session) = store.session_lookup(tenant, session_id).await? else {
            return Ok(false);
        };
        if session.thread.as_deref() == Some(self.name.as_str()) {
            return Ok(true);
        }
        // The thread may have been made from a session of another one.
        let mut next = self.session_id().await?;
        while let Some(id) = next {
            if id == session_id {
                return Ok(true);
            }
            let head = store.session_lookup(tenant, id).await?;
            next = head
                .filter(|head| head.depth > session.depth)
                .and_then(|head| head.parent_session_id);
        }
        Ok(false)
    }

    /// Finds the end of the turn of a run, or of the first message of an imported turn; `None` if
    /// this thread has no such turn.
    pub(super) async fn turn_end(&self, run_id: Option<RunId>) -> Result<Option<TurnEnd>, Problem> {
        let Some(run_id) = run_id else {
            return Ok(None);
        };
        let run = run_lookup(&self.call.api.runs, &self.call.tenant, run_id).await?;
        let own = run.filter(|run| run.summary.thread.as_ref() == Some(&self.name));
        match own {
            Some(run) => self.end_of_turn(run).await.map(Some),
            None => self.turn_in_history(run_id).await,
        }
    }

    /// Follows the runs of a turn, each of which has answered the calls of the one before.
    async fn end_of_turn(&self, first: RunRecord) -> Result<TurnEnd, Problem> {
        let (runs, tenant) = (&self.call.api.runs, &self.call.tenant);
        let first_run = first.summary.run_id;
        let mut last = first.summary;
        while last.status == RunStatus::Answered
            && let Some(answering) = last.answer_run_id
            && let Some(next) = run_lookup(runs, tenant, answering).await?
            && self.continues(&next).await?
            && (next.summary.has_session() || !next.summary.status.is_terminal())
        {
            last = next.summary;
        }
        Ok(TurnEnd {
            first_run,
            session_id: last.has_session().then_some(last.session_id),
        })
    }

    /// Returns whether a run that answers calls goes on with their turn: it has no message of the
    /// user.
    pub(super) async fn continues(&self, run: &RunRecord) -> Result<bool, Problem> {
        if let Some(continues) = ChatEcho::of_stored(run.echo.as_deref()).continues {
            return Ok(continues);
        }
        // Only its session has the messages of a run that came from elsewhere.
        if !run.summary.status.is_terminal() {
            return Ok(false);
        }
        let (runs, tenant) = (&self.call.api.runs, &self.call.tenant);
        let messages = run_messages(runs, tenant, run.summary.run_id).await?;
        Ok(messages.is_none_or(|messages| messages.input.is_empty()))
    }

    /// Reads the runs before a run that goes on with their turn, oldest first.
    pub(super) async fn earlier_runs(&self, run: &RunRecord) -> Result<Vec<RunMessages>, Problem> {
        let (runs, tenant) = (&self.call.api.runs, &self.call.tenant);
        let (mut earlier, mut run) = (VecDeque::new(), run.clone());
        while let Some(base) = run.summary.base_session_id
            && let Some(bundle) = runs.sessions.bundle(tenant, base).await?
            && let Some(asking) = bundle.waiting().and_then(|waiting| waiting.run_id)
            && self.continues(&run).await?
            && let Some(messages) = run_messages(runs, tenant, asking).await?
        {
            run = messages.record.clone();
            earlier.push_front(messages);
        }
        Ok(earlier.into())
    }

    /// Returns the calls of a session that wait for answers, with their step.
    pub(super) async fn open_calls(&self, session_id: SessionId) -> Result<Option<(StepId, Vec<OpenCall>)>, Problem> {
        let bundle = self
            .call
            .api
            .runs
            .sessions
            .bundle(&self.call.tenant, session_id)
            .await?;
        let waiting = bundle.as_ref().and_then(|bundle| bundle.waiting());
        Ok(waiting.and_then(|waiting| {
            let step_id = open_step_id(waiting)?;
            Some((step_id, waiting.open_calls.clone()))
        }))
    }

    /// Finds a turn of another thread, or one that was imported, in the history of this thread. It
    /// ends before the next message of a user, and a session must end there.
    async fn turn_in_history(&self, id: RunId) -> Result<Option<TurnEnd>, Problem> {
        let Some(bundle) = self.bundle().await? else {
            return Ok(None);
        };
        let (tip, count) = (bundle.head.session_id, bundle.head.message_count);
        let waits = bundle.waiting().is_some_and(|waiting| waiting.run_id == Some(id));
        let end = end_in(&bundle, id).or_else(|| waits.then_some(count));
        let Some(end) = end else { return Ok(None) };
        if end >= count {
            return Ok(Some(TurnEnd::new(id, tip)));
        }
        let (store, tenant) = (&self.call.api.runs.store, &self.call.tenant);
        let Some(added) = store.session_lookup_by_message(tenant, tip, end - 1).await? else {
            return Ok(None);
        };
        let session = store.session_lookup(tenant, added.session_id()).await?;
        let ends_there = session.filter(|session| session.message_count == end);
        Ok(ends_there.map(|session| TurnEnd::new(id, session.session_id)))
    }

    /// Finds the session before the message of the user that has an id on the page, in the history
    /// of the thread; `None` if there is no such message.
    pub(super) async fn before_message(&self, id: &str) -> Result<Option<Option<SessionId>>, Problem> {
        let Some(bundle) = self.bundle().await? else {
            return Ok(None);
        };
        let found = bundle
            .history
            .iter()
            .rev()
            .find(|message| EchoMessage::names(message, id));
        let run_id = found.and_then(|message| message.tags.execution_id);
        let Some(run_id) = run_id.map(|id| RunId::from_uuid(id.as_uuid())) else {
            return Ok(None);
        };
        let run = run_lookup(&self.call.api.runs, &self.call.tenant, run_id).await?;
        Ok(run.map(|run| run.summary.base_session_id))
    }

    /// Returns the variables of a session.
    pub(super) async fn variables(&self, session_id: Option<SessionId>) -> Result<BTreeMap<String, Value>, Problem> {
        let Some(session_id) = session_id else {
            return Ok(BTreeMap::new());
        };
        let sessions = &self.call.api.runs.sessions;
        let bundle = sessions.bundle(&self.call.tenant, session_id).await?;
        Ok(bundle.map_or_else(BTreeMap::new, |bundle| bundle.environment.variables.clone()))
    }

    async fn bundle(&self) -> Result<Option<Arc<Bundle>>, Problem> {
        let Some(session_id) = self.session_id().await? else {
            return Ok(None);
        };
        let sessions = &self.call.api.runs.sessions;
        Ok(sessions.whole_bundle(&self.call.tenant, session_id).await?)
    }
}

/// Returns the number of messages up to the end of a turn; `None` if the session has nothing of it.
fn end_in(bundle: &Bundle, id: RunId) -> Option<u64> {
    let messages: Vec<&Message> = bundle.history.iter().map(AsRef::as_ref).collect();
    let is_of_turn = |message: &&Message| {
        let execution = message.tags.execution_id.map(ExecutionId::as_uuid);
        message.id.as_uuid() == id.as_uuid() || execution == Some(id.as_uuid())
    };
    let is_of_user = |message: &&Message| message.role == Role::User && is_input(&message.tags);
    let first = messages.iter().position(is_of_turn)?;
    let question = messages[first..]
        .iter()
        .take_while(|message| is_of_user(message))
        .count();
    let answer = messages[first + question..]
        .iter()
        .take_while(|message| !is_of_user(message));
    Some((first + question + answer.count()) as u64)
}
