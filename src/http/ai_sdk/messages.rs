//! `GET /v1/ai-sdk/{agent}/chat/{chat_id}/messages`.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use futures_util::future::try_join_all;
use serde::Serialize;

use super::body::AiSdkObject;
use super::chat_thread::ChatThread;
use crate::http::auth::Call;
use crate::http::faces::ai_sdk::{ChatEcho, UiMessage, messages_of};
use crate::http::in_flight::{SMALL, reading, respond_with};
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::http::sessions::stream::list_segments;
use crate::run::read::{passage_runs, passages_of};
use agent::record::RunRecord;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::json::Value;

/// How many passages are read at the same time.
const AT_ONCE: usize = 8;
/// How often the messages are in memory: as they are stored, in the records of their runs, and as
/// the page gets them.
const COPIES: u64 = 3;

/// A message as it is shown.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    /// A message of a session.
    Stored(UiMessage),
    /// A message that has no session yet, or never will.
    Waiting(Value),
}

/// Returns the messages of a chat, with the ids that its page knows.
///
/// A page begins with them. The message at work is not among them: its stream has it from the first
/// chunk on. The question of a turn that has failed is.
#[utoipa::path(get, path = "/v1/ai-sdk/{agent}/chat/{chat_id}/messages", tag = "ai_sdk", params(
    ("agent" = String, Path), ("chat_id" = String, Path),
), responses(
    (status = 200, description = "The messages, as the AI SDK has them; none for an unknown chat", body = Vec<AiSdkObject>),
))]
pub(in crate::http) async fn list_chat_messages(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let Some(thread) = ChatThread::in_path(&call, &path) else {
        return Ok(axum::Json(Vec::<Shown>::new()).into_response());
    };
    let newest = thread.newest_run(&[]).await?;
    let tip = thread.session_id().await?;
    let is_active = |run: &RunRecord| !run.summary.status.is_terminal();
    let (session_id, question) = match newest {
        Some(run) if is_active(&run) => (run.summary.base_session_id, Some(run)),
        // Another turn may have followed elsewhere in the tree since.
        Some(run) if !run.summary.status.has_session() && run.summary.base_session_id == tip => (tip, Some(run)),
        _ => (tip, None),
    };
    let (share, mut shown) = match session_id {
        Some(session_id) => read(&call, session_id).await?,
        None => (call.api.in_flight.take_soon(&call.tenant, SMALL).await?, Vec::new()),
    };
    let question = question.map(|run| ChatEcho::of_stored(run.echo.as_deref()).messages);
    shown.extend(question.unwrap_or_default().into_iter().map(Shown::Waiting));
    respond_with(share, shown).await
}

/// Reads the messages of a session, once there is room for them and for what is made of them.
async fn read(call: &Call, session_id: SessionId) -> Result<(Share, Vec<Shown>), Problem> {
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    let head = runs.store.session_lookup(tenant, session_id).await?;
    let count = head.map_or(0, |head| head.message_count);
    let segments = list_segments(call, session_id, 0..count).await?.unwrap_or_default();
    let bytes = segments.iter().map(|segment| segment.bytes).sum::<u64>();
    let room = SMALL.saturating_add(reading(bytes.saturating_mul(COPIES)));
    let share = call.api.in_flight.take_soon(tenant, room).await?;
    let Some(bundle) = runs.sessions.whole_bundle(tenant, session_id).await? else {
        return Ok((share, Vec::new()));
    };
    let passages: Vec<_> = passages_of(&bundle).into_iter().map(Arc::new).collect();
    let mut read = Vec::with_capacity(passages.len());
    for passages in passages.chunks(AT_ONCE) {
        let found = passages.iter().map(|passage| passage_runs(runs, tenant, passage));
        read.extend(passages.iter().cloned().zip(try_join_all(found).await?));
    }
    let made = move || messages_of(&read).into_iter().map(Shown::Stored).collect();
    Ok((share, by_size(tenant, bytes, made).await))
}
