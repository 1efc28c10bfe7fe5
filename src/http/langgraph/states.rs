//! The states of threads.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::response::Response;
use serde::Deserialize;
use tokio::time::sleep;

use super::body::LangGraphObject;
use super::partial_answers::stored_answers;
use super::thread_path::known_thread;
use crate::http::auth::Call;
use crate::http::chat_history::{COPIES, ChatHistory, read_history, read_passages, size_of};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::ChatEcho;
use crate::http::faces::langgraph::{
    CheckpointName, Message, OpenStep, StateNode, ThreadState, error_of, in_order, line_of,
};
use crate::http::in_flight::{SMALL, reading, respond_with};
use crate::http::json_body::JsonBody;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::await_ending;
use crate::run::read::run_lookup;
use agent::record::RunStatus;
use store::Page;
use store::sessions::SessionFilter;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::Value;
use values::session::{RunOutcome, SessionHead};

/// The most sessions of a history: the newest.
const MAX_SESSIONS: u32 = 50;
/// The most sessions of each branch whose states are large.
const MIN_SESSIONS: usize = 4;
/// The size of a history, in bytes of stored messages, from which on it has fewer sessions.
const MAX_BYTES: u64 = 16 << 20;

/// How long a request to stop a run may come after one for the messages.
const STOP_DELAY: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize)]
pub(in crate::http) struct CheckpointBody {
    checkpoint: NamedCheckpoint,
}

#[derive(Debug, Deserialize)]
struct NamedCheckpoint {
    checkpoint_id: String,
}

/// Returns the state of a thread.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/state", tag = "langgraph",
    params(("thread_id" = String, Path)), responses(
    (status = 200, description = "The state", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn get_thread_state(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    let history = Box::pin(settled_history(&thread)).await?;
    let (share, head) = head_of(&thread, history).await?;
    let state = match head.name {
        CheckpointName::Root => ThreadState::of_new_thread(),
        _ => ThreadState::new(thread.name.as_str(), head),
    };
    respond_with(share, state).await
}

/// Returns the state of a thread at a checkpoint.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/state/{checkpoint_id}", tag = "langgraph",
    params(("thread_id" = String, Path), ("checkpoint_id" = String, Path)), responses(
    (status = 200, description = "The state", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::SessionNotFound]))))]
pub(in crate::http) async fn get_checkpoint_state(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    Box::pin(respond_at(&thread, path.text("checkpoint_id"))).await
}

/// Returns the state of a thread at a checkpoint of the body.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/state/checkpoint", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body(content = LangGraphObject, description = "`checkpoint`"), responses(
    (status = 200, description = "The state", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::SessionNotFound]))))]
pub(in crate::http) async fn get_state_at(
    call: Call,
    path: PathParameters,
    JsonBody(body): JsonBody<CheckpointBody>,
) -> Result<Response, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    Box::pin(respond_at(&thread, &body.checkpoint.checkpoint_id)).await
}

/// Returns the states of a thread in all branches, each one after those that continue it.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/history", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body(content = LangGraphObject, description = "`limit` and `before`"), responses(
    (status = 200, description = "The states", body = Vec<LangGraphObject>),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn list_thread_history(
    call: Call,
    path: PathParameters,
    JsonBody(body): JsonBody<HistoryBody>,
) -> Result<Response, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    let (share, nodes) = Box::pin(read_states(&thread)).await?;
    // Branches are drawn from a whole tree, so only a small limit cuts it.
    let limit = body.limit.filter(|limit| *limit < 10).unwrap_or(usize::MAX);
    let before = body.before.as_ref().and_then(before_in);
    let skipped = before.and_then(|before| nodes.iter().position(|node| node.name == before));
    let states = nodes.into_iter().skip(skipped.map_or(0, |index| index + 1)).take(limit);
    let states: Vec<_> = states
        .map(|node| ThreadState::new(thread.name.as_str(), node))
        .collect();
    respond_with(share, states).await
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct HistoryBody {
    limit: Option<usize>,
    before: Option<Value>,
}

/// Returns the checkpoint that comes before a page of states.
fn before_in(before: &Value) -> Option<CheckpointName> {
    let named = before.get("configurable").unwrap_or(before);
    CheckpointName::read(named.get("checkpoint_id")?.as_str()?)
}

async fn respond_at(thread: &ChatThread<'_>, name: &str) -> Result<Response, Problem> {
    let missing = || missing_checkpoint(name);
    let wanted = CheckpointName::read(name).ok_or_else(missing)?;
    let (share, nodes) = read_states(thread).await?;
    let node = nodes.into_iter().find(|node| node.name == wanted).ok_or_else(missing)?;
    respond_with(share, ThreadState::new(thread.name.as_str(), node)).await
}

/// Makes the problem of a checkpoint that a thread does not have.
pub(super) fn missing_checkpoint(name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    Problem::new(
        ProblemCode::SessionNotFound,
        format!("the thread has no checkpoint {shown:?}"),
    )
}

/// Returns the state at the head of a thread, with the room that it takes.
pub(super) async fn head_of(thread: &ChatThread<'_>, history: ChatHistory) -> Result<(Share, StateNode), Problem> {
    let ChatHistory {
        session_id,
        passages,
        question,
        asking,
        bytes,
        share,
    } = history.without_cancelled();
    let asked = question.into_iter().map(Message::of_user).collect::<Vec<_>>();
    let before = session_id.map_or(CheckpointName::Root, CheckpointName::Session);
    let line = by_size(&thread.call.tenant, bytes, move || {
        session_id.map(|tip| line_of(&passages, tip, 1))
    })
    .await;
    let tip = line.and_then(|mut line| line.pop());
    let tip = tip.unwrap_or_else(|| StateNode::new(before, None, Vec::new()));
    let Some(run) = asking.filter(|_| !asked.is_empty()) else {
        let open = match session_id {
            Some(session_id) => open_step(thread, session_id).await?,
            None => None,
        };
        let created_at = created_at(thread, session_id).await?;
        return Ok((
            share,
            StateNode {
                open,
                created_at,
                ..tip
            },
        ));
    };
    let mut messages = tip.messages;
    messages.extend(asked);
    let again = ChatEcho::of_stored(run.echo.as_deref()).again;
    let name = CheckpointName::Input(again.unwrap_or(run.summary.session_id));
    let error = (run.summary.status == RunStatus::Failed).then(|| error_of(&run));
    let created_at = Some(run.summary.created_at);
    let node = StateNode::new(name, Some(before), messages);
    Ok((
        share,
        StateNode {
            error,
            created_at,
            ..node
        },
    ))
}

/// Returns the calls of a session that wait, without those whose answers are stored.
pub(super) async fn open_step(thread: &ChatThread<'_>, session_id: SessionId) -> Result<Option<OpenStep>, Problem> {
    let Some((id, calls)) = thread.open_calls(session_id).await? else {
        return Ok(None);
    };
    let step = OpenStep { id, calls };
    let answers = stored_answers(thread, &step).await?;
    Ok(Some(step.without(&answers)))
}

async fn created_at(thread: &ChatThread<'_>, session_id: Option<SessionId>) -> Result<Option<Timestamp>, Problem> {
    let Some(session_id) = session_id else { return Ok(None) };
    let session = thread
        .call
        .api
        .runs
        .store
        .session_lookup(&thread.call.tenant, session_id)
        .await?;
    Ok(session.map(|session| session.created_at))
}

/// Reads the messages of a thread, after the end of a run that was stopped: a client stops a run
/// and reads them at once, and never again.
async fn settled_history(thread: &ChatThread<'_>) -> Result<ChatHistory, Problem> {
    let history = Box::pin(read_history(thread)).await?;
    let Some(run_id) = history.active().map(|run| run.summary.run_id) else {
        return Ok(history);
    };
    sleep(STOP_DELAY).await;
    let (runs, tenant) = (&thread.call.api.runs, &thread.call.tenant);
    let is_ending = await_ending(runs, tenant, run_id).await;
    let is_ending = is_ending.map_err(|refusal| thread.call.problem(refusal))?;
    let run = run_lookup(runs, tenant, run_id).await?;
    if !is_ending && run.is_some_and(|run| !run.summary.status.is_terminal()) {
        return Ok(history);
    }
    drop(history);
    Box::pin(read_history(thread)).await
}

/// Reads the states of a thread, in order, once there is room for them.
async fn read_states(thread: &ChatThread<'_>) -> Result<(Share, Vec<StateNode>), Problem> {
    let call = thread.call;
    let history = Box::pin(settled_history(thread)).await?;
    let tip = history.session_id;
    let (own, head) = head_of(thread, history).await?;
    let filter = SessionFilter {
        thread: Some(thread.name.clone()),
        ..SessionFilter::default()
    };
    let page = Page {
        before: None,
        limit: MAX_SESSIONS,
    };
    let sessions = call.api.runs.store.session_list(&call.tenant, &filter, page).await?;
    let read = to_read(&sessions, tip);
    let mut bytes = 0;
    for session_id in &read {
        bytes += size_of(call, *session_id).await?;
    }
    drop(own);
    // Each state has all messages before it.
    let most = usize::try_from(MAX_BYTES / bytes.max(1)).unwrap_or(usize::MAX);
    let most = most.clamp(MIN_SESSIONS, MAX_SESSIONS as usize);
    let copies = COPIES + 2 * most as u64;
    let room = SMALL.saturating_add(reading(bytes.saturating_mul(copies)));
    let share = call.api.in_flight.take_soon(&call.tenant, room).await?;
    let mut nodes: Vec<StateNode> = Vec::new();
    for session_id in read {
        let passages = read_passages(call, session_id).await?;
        let line = by_size(&call.tenant, bytes, move || line_of(&passages, session_id, most)).await;
        for node in line {
            add(&mut nodes, node, &sessions, session_id);
        }
        let open = open_step(thread, session_id).await?;
        let name = CheckpointName::Session(session_id);
        if let Some(node) = nodes.iter_mut().find(|node| node.name == name) {
            node.open = open;
        }
    }
    finish(&mut nodes, head.clone());
    Ok((share, in_order(nodes, head.name)))
}

/// Returns the sessions to read, whose lines have all others: those that nothing continues, and
/// those that wait, since only they have their open calls. The line of the tip is the first.
fn to_read(sessions: &[SessionHead], tip: Option<SessionId>) -> Vec<SessionId> {
    let continued: BTreeSet<_> = sessions.iter().filter_map(|one| one.parent_session_id).collect();
    let is_read =
        |one: &&SessionHead| !continued.contains(&one.session_id) || one.run_status == Some(RunOutcome::Waiting);
    let others = sessions.iter().filter(is_read).map(|one| one.session_id);
    let others = others.filter(|one| Some(*one) != tip);
    tip.into_iter().chain(others).collect()
}

/// Adds a state, unless it is known. A session that waits is known from its own line alone.
fn add(nodes: &mut Vec<StateNode>, mut node: StateNode, sessions: &[SessionHead], read: SessionId) {
    if let CheckpointName::Session(session_id) = node.name {
        let head = sessions.iter().find(|one| one.session_id == session_id);
        node.created_at = head.map(|head| head.created_at);
        let waits = head.is_some_and(|head| head.run_status == Some(RunOutcome::Waiting));
        if waits && session_id != read {
            return;
        }
    }
    if !nodes.iter().any(|known| known.name == node.name) {
        nodes.push(node);
    }
}

/// Adds the head and, if the history is whole, the state before all sessions.
fn finish(nodes: &mut Vec<StateNode>, head: StateNode) {
    let root = CheckpointName::Root;
    match nodes.iter_mut().find(|node| node.name == head.name) {
        Some(known) => {
            known.open = head.open;
            known.error = head.error;
        }
        None if head.name == root => (),
        None => nodes.push(head),
    }
    // Clients lose the head if they see the root of a line that is cut.
    let names: BTreeSet<_> = nodes.iter().map(|node| node.name.to_string()).collect();
    let mut parents = nodes.iter().filter_map(|node| node.parent);
    if parents.all(|parent| parent == root || names.contains(&parent.to_string())) {
        nodes.push(StateNode::new(root, None, Vec::new()));
    }
}
