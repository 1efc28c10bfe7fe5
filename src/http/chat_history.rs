//! Reads the conversation of a thread as pages show it.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::auth::Call;
use super::chat_thread::ChatThread;
use super::faces::chat::{ChatEcho, EchoMessage, ReadPassage};
use super::in_flight::{SMALL, reading};
use super::problem::Problem;
use super::sessions::stream::list_segments;
use crate::run::read::{passage_runs, passages_of};
use agent::record::{RunRecord, RunStatus};
use tasks::fair_share::Share;
use values::ids::SessionId;

/// How many passages are read at the same time.
const AT_ONCE: usize = 8;
/// How often the messages are in memory: as they are stored, in the records of their runs, and as
/// the page gets them.
pub(super) const COPIES: u64 = 3;

/// What a thread is about to show.
#[derive(Debug)]
pub(super) struct ChatOutline {
    /// The session.
    pub(super) session_id: Option<SessionId>,
    /// The question that has no session yet, or never will.
    pub(super) question: Vec<EchoMessage>,
    /// The run at work or, if none is, the newest one.
    pub(super) newest: Option<RunRecord>,
}

/// What a page shows of a thread.
pub(super) struct ChatHistory {
    pub(super) outline: ChatOutline,
    /// What the session has.
    pub(super) passages: Vec<ReadPassage>,
    /// The size of the messages, in bytes.
    pub(super) bytes: u64,
    /// The room that the messages take.
    pub(super) share: Share,
}

impl ChatOutline {
    /// Reads what a thread is about to show.
    pub(super) async fn read(thread: &ChatThread<'_>) -> Result<Self, Problem> {
        let newest = match thread.active_run().await? {
            Some(active) => Some(active),
            None => thread.newest_run(&[]).await?,
        };
        let session_id = match &newest {
            Some(run) if !run.summary.status.is_terminal() => run.summary.base_session_id,
            _ => thread.session_id().await?,
        };
        let outline = Self {
            session_id,
            question: Vec::new(),
            newest,
        };
        let echo = outline.asking().and_then(|run| run.echo.clone());
        let question = ChatEcho::of_stored(echo.as_deref()).messages;
        Ok(Self { question, ..outline })
    }

    /// Returns the same without the question of a run that was cancelled.
    pub(super) fn without_cancelled(self) -> Self {
        let is_cancelled = |run: &RunRecord| run.summary.status == RunStatus::Cancelled;
        if !self.asking().is_some_and(is_cancelled) {
            return self;
        }
        Self {
            question: Vec::new(),
            newest: None,
            ..self
        }
    }

    /// Returns the run of the question: it is at work, or has no session. Another turn may have
    /// followed elsewhere in the tree since.
    pub(super) fn asking(&self) -> Option<&RunRecord> {
        let newest = self.newest.as_ref();
        newest.filter(|run| !run.summary.status.has_session() && run.summary.base_session_id == self.session_id)
    }

    /// Returns the run at work.
    pub(super) fn active(&self) -> Option<&RunRecord> {
        self.newest.as_ref().filter(|run| !run.summary.status.is_terminal())
    }
}

/// Reads the messages of a thread, once there is room for them and for what is made of them.
pub(super) async fn read_history(thread: &ChatThread<'_>) -> Result<ChatHistory, Problem> {
    let outline = ChatOutline::read(thread).await?;
    let (share, bytes, passages) = read_or_nothing(thread.call, outline.session_id).await?;
    Ok(ChatHistory {
        outline,
        passages,
        bytes,
        share,
    })
}

/// Reads a session like [`read`], if there is one.
pub(super) async fn read_or_nothing(
    call: &Call,
    session_id: Option<SessionId>,
) -> Result<(Share, u64, Vec<ReadPassage>), Problem> {
    match session_id {
        Some(session_id) => read(call, session_id).await,
        None => Ok((call.api.in_flight.take_soon(&call.tenant, SMALL).await?, 0, Vec::new())),
    }
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
