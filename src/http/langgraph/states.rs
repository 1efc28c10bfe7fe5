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
use crate::http::chat_history::{COPIES, ChatOutline, read_or_nothing, read_passages, size_of};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::{ChatEcho, EchoMessage, ReadPassage};
use crate::http::faces::langgraph::{
    CheckpointName, Message, OpenStep, StateNode, ThreadState, error_of, in_order, line_of,
};
use crate::http::in_flight::{SMALL, reading, respond_with};
use crate::http::json_body::JsonBody;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::await_ending;
use agent::record::{RunRecord, RunStatus};
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
    let outline = settled_outline(&thread).await?;
    let (share, head) = head_of(&thread, outline).await?;
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
pub(super) async fn head_of(thread: &ChatThread<'_>, outline: ChatOutline) -> Result<(Share, StateNode), Problem> {
    let (share, bytes, passages) = read_or_nothing(thread.call, outline.session_id).await?;
    let mut line = line_to_head(thread, outline, (bytes, passages), 1).await?;
    let head = line.pop();
    Ok((
        share,
        head.unwrap_or_else(|| StateNode::new(CheckpointName::Root, None, Vec::new())),
    ))
}

/// Returns the last states of the line that ends with the head of a thread, oldest first. A thread
/// without sessions and runs has none.
async fn line_to_head(
    thread: &ChatThread<'_>,
    outline: ChatOutline,
    (bytes, passages): (u64, Vec<ReadPassage>),
    most: usize,
) -> Result<Vec<StateNode>, Problem> {
    let outline = outline.without_cancelled();
    let asking = outline.asking().cloned();
    let ChatOutline {
        session_id, question, ..
    } = outline;
    let Some(tip) = session_id else {
        return Ok(with_question(Vec::new(), asking, question));
    };
    let mut line = by_size(&thread.call.tenant, bytes, move || line_of(&passages, tip, most)).await;
    if let Some(node) = line.last_mut() {
        node.open = open_step(thread, tip).await?;
        node.created_at = created_at(thread, tip).await?;
    }
    Ok(with_question(line, asking, question))
}

/// Adds the question that has no session, after the last state.
fn with_question(mut line: Vec<StateNode>, asking: Option<RunRecord>, question: Vec<EchoMessage>) -> Vec<StateNode> {
    let Some(run) = asking.filter(|_| !question.is_empty()) else {
        return line;
    };
    let again = ChatEcho::of_stored(run.echo.as_deref()).again;
    let name = CheckpointName::Input(again.unwrap_or(run.summary.session_id));
    let before = line.last().map_or(CheckpointName::Root, |node| node.name);
    let mut messages = line.last().map_or_else(Vec::new, |node| node.messages.clone());
    messages.extend(question.into_iter().map(Message::of_user));
    line.push(StateNode {
        error: (run.summary.status == RunStatus::Failed).then(|| error_of(&run)),
        created_at: Some(run.summary.created_at),
        ..StateNode::new(name, Some(before), messages)
    });
    line
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

async fn created_at(thread: &ChatThread<'_>, session_id: SessionId) -> Result<Option<Timestamp>, Problem> {
    let call = thread.call;
    let session = call.api.runs.store.session_lookup(&call.tenant, session_id).await?;
    Ok(session.map(|session| session.created_at))
}

/// Reads what a thread shows, after the end of a run that was stopped: a client stops a run and
/// reads its messages at once, and never again.
async fn settled_outline(thread: &ChatThread<'_>) -> Result<ChatOutline, Problem> {
    let outline = ChatOutline::read(thread).await?;
    let Some(run_id) = outline.active().map(|run| run.summary.run_id) else {
        return Ok(outline);
    };
    sleep(STOP_DELAY).await;
    let ending = await_ending(&thread.call.api.runs, &thread.call.tenant, run_id).await;
    ending.map_err(|refusal| thread.call.problem(refusal))?;
    ChatOutline::read(thread).await
}

/// Reads the states of a thread, in order, once there is room for them.
async fn read_states(thread: &ChatThread<'_>) -> Result<(Share, Vec<StateNode>), Problem> {
    let call = thread.call;
    let outline = settled_outline(thread).await?;
    let filter = SessionFilter {
        thread: Some(thread.name.clone()),
        ..SessionFilter::default()
    };
    let page = Page {
        before: None,
        limit: MAX_SESSIONS,
    };
    let sessions = call.api.runs.store.session_list(&call.tenant, &filter, page).await?;
    let tip = outline.session_id;
    let others = others_to_read(&sessions, tip);
    let mut bytes = 0;
    for session_id in tip.iter().chain(&others) {
        bytes += size_of(call, *session_id).await?;
    }
    // Each state has all messages before it.
    let most = usize::try_from(MAX_BYTES / bytes.max(1)).unwrap_or(usize::MAX);
    let most = most.clamp(MIN_SESSIONS, MAX_SESSIONS as usize);
    let copies = COPIES + 2 * most as u64;
    let room = SMALL.saturating_add(reading(bytes.saturating_mul(copies)));
    let share = call.api.in_flight.take_soon(&call.tenant, room).await?;
    let passages = match tip {
        Some(tip) => read_passages(call, tip).await?,
        None => Vec::new(),
    };
    let line = line_to_head(thread, outline, (bytes, passages), most).await?;
    let head = line.last().map_or(CheckpointName::Root, |head| head.name);
    let mut nodes = Vec::new();
    add_line(&mut nodes, line, &sessions, tip);
    for session_id in others {
        let passages = read_passages(call, session_id).await?;
        let mut line = by_size(&call.tenant, bytes, move || line_of(&passages, session_id, most)).await;
        if let Some(node) = line.last_mut() {
            node.open = open_step(thread, session_id).await?;
        }
        add_line(&mut nodes, line, &sessions, Some(session_id));
    }
    add_root(&mut nodes);
    Ok((share, in_order(nodes, head)))
}

/// Returns the sessions to read beside the tip, whose lines have all others: those that nothing
/// continues, and those that wait, since only they have their open calls.
fn others_to_read(sessions: &[SessionHead], tip: Option<SessionId>) -> Vec<SessionId> {
    let continued: BTreeSet<_> = sessions.iter().filter_map(|one| one.parent_session_id).collect();
    let is_read =
        |one: &&SessionHead| !continued.contains(&one.session_id) || one.run_status == Some(RunOutcome::Waiting);
    let others = sessions.iter().filter(is_read).map(|one| one.session_id);
    others.filter(|one| Some(*one) != tip).collect()
}

/// Adds the states of a line that are not known. A session that waits is known from its own line
/// alone, whose last session is `tip`.
fn add_line(nodes: &mut Vec<StateNode>, line: Vec<StateNode>, sessions: &[SessionHead], tip: Option<SessionId>) {
    for mut node in line {
        if let CheckpointName::Session(session_id) = node.name
            && let Some(head) = sessions.iter().find(|one| one.session_id == session_id)
        {
            node.created_at = Some(head.created_at);
            if head.run_status == Some(RunOutcome::Waiting) && Some(session_id) != tip {
                continue;
            }
        }
        match nodes.iter_mut().find(|known| known.name == node.name) {
            // A run repeats the input of another one, and has failed.
            Some(known) => known.error = known.error.take().or(node.error),
            None => nodes.push(node),
        }
    }
}

/// Adds the state before all sessions, if the history is whole: clients lose the head if they see
/// the root of a line that is cut.
fn add_root(nodes: &mut Vec<StateNode>) {
    let root = CheckpointName::Root;
    let names: BTreeSet<_> = nodes.iter().map(|node| node.name.to_string()).collect();
    let mut parents = nodes.iter().filter_map(|node| node.parent);
    if parents.all(|parent| parent == root || names.contains(&parent.to_string())) {
        nodes.push(StateNode::new(root, None, Vec::new()));
    }
}
