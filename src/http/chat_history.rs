//! Reads the conversation of a thread as pages show it.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::auth::Call;
use super::chat_thread::ChatThread;
use super::faces::chat::{ChatEcho, EchoMessage};
use super::in_flight::{SMALL, reading};
use super::problem::Problem;
use super::sessions::stream::list_segments;
use crate::run::read::{Passage, PassageRuns, passage_runs, passages_of};
use agent::record::{RunRecord, RunStatus};
use tasks::fair_share::Share;
use values::ids::SessionId;

/// How many passages are read at the same time.
const AT_ONCE: usize = 8;
/// How often the messages are in memory: as they are stored, in the records of their runs, and as
/// the page gets them.
pub(super) const COPIES: u64 = 3;

/// A passage, with the runs that have made it.
pub(super) type ReadPassage = (Arc<Passage>, Option<PassageRuns>);

/// What a page shows of a thread.
pub(super) struct ChatHistory {
    /// The session.
    pub(super) session_id: Option<SessionId>,
    /// What it has.
    pub(super) passages: Vec<ReadPassage>,
    /// The question that has no session yet, or never will.
    pub(super) question: Vec<EchoMessage>,
    /// The run of the question: it is at work, or has no session.
    pub(super) asking: Option<RunRecord>,
    /// The size of the messages, in bytes.
    pub(super) bytes: u64,
    /// The room that the messages take.
    pub(super) share: Share,
}

impl ChatHistory {
    /// Returns the same without the question of a run that was cancelled.
    pub(super) fn without_cancelled(self) -> Self {
        let is_cancelled = |run: &RunRecord| run.summary.status == RunStatus::Cancelled;
        if !self.asking.as_ref().is_some_and(is_cancelled) {
            return self;
        }
        Self {
            question: Vec::new(),
            asking: None,
            ..self
        }
    }

    /// Returns the run at work.
    pub(super) fn active(&self) -> Option<&RunRecord> {
        let asking = self.asking.as_ref();
        asking.filter(|run| !run.summary.status.is_terminal())
    }
}

/// Reads the messages of a thread, once there is room for them and for what is made of them.
pub(super) async fn read_history(thread: &ChatThread<'_>) -> Result<ChatHistory, Problem> {
    let call = thread.call;
    let newest = match thread.active_run().await? {
        Some(active) => Some(active),
        None => thread.newest_run(&[]).await?,
    };
    let tip = thread.session_id().await?;
    let is_active = |run: &RunRecord| !run.summary.status.is_terminal();
    let (session_id, asking) = match &newest {
        Some(run) if is_active(run) => (run.summary.base_session_id, newest),
        // Another turn may have followed elsewhere in the tree since.
        Some(run) if !run.summary.status.has_session() && run.summary.base_session_id == tip => (tip, newest),
        _ => (tip, None),
    };
    let question = asking
        .as_ref()
        .map(|run| ChatEcho::of_stored(run.echo.as_deref()).messages);
    let (share, bytes, passages) = match session_id {
        Some(session_id) => read(call, session_id).await?,
        None => (call.api.in_flight.take_soon(&call.tenant, SMALL).await?, 0, Vec::new()),
    };
    Ok(ChatHistory {
        session_id,
        passages,
        question: question.unwrap_or_default(),
        asking,
        bytes,
        share,
    })
}

/// Reads a session once there is room for it. Also returns the room, and the size of its messages.
pub(super) async fn read(call: &Call, session_id: SessionId) -> Result<(Share, u64, Vec<ReadPassage>), Problem> {
    let bytes = size_of(call, session_id).await?;
    let room = SMALL.saturating_add(reading(bytes.saturating_mul(COPIES)));
    let share = call.api.in_flight.take_soon(&call.tenant, room).await?;
    Ok((share, bytes, read_passages(call, session_id).await?))
}

/// Returns the size of the messages of a session, in bytes.
pub(super) async fn size_of(call: &Call, session_id: SessionId) -> Result<u64, Problem> {
    let head = call.api.runs.store.session_lookup(&call.tenant, session_id).await?;
    let count = head.map_or(0, |head| head.message_count);
    let segments = list_segments(call, session_id, 0..count).await?.unwrap_or_default();
    Ok(segments.iter().map(|segment| segment.bytes).sum())
}

/// Reads the passages of a session, for which there is room. A session that does not exist has
/// none.
pub(super) async fn read_passages(call: &Call, session_id: SessionId) -> Result<Vec<ReadPassage>, Problem> {
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    let Some(bundle) = runs.sessions.whole_bundle(tenant, session_id).await? else {
        return Ok(Vec::new());
    };
    let passages: Vec<_> = passages_of(&bundle).into_iter().map(Arc::new).collect();
    let mut read = Vec::with_capacity(passages.len());
    for passages in passages.chunks(AT_ONCE) {
        let found = passages.iter().map(|passage| passage_runs(runs, tenant, passage));
        read.extend(passages.iter().cloned().zip(try_join_all(found).await?));
    }
    Ok(read)
}
