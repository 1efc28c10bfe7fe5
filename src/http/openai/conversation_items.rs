//! The items of conversations: lists, shows, adds and deletes them. No model is asked.

use std::sync::Arc;

use axum::response::Response;

use super::body::{OpenAiObject, no_item, opener};
use super::conversations::{ConversationObject, new_messages, thread_in};
use super::lists::take_window;
use super::transcript::Transcript;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::item_list::ItemList;
use crate::http::faces::openai::request::CreateConversation;
use crate::http::faces::openai::stored_items::items_of;
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::json_response::json_with_room;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::run::files::{Attempts, ChildSession};
use crate::run::refusal::Refusal;
use crate::run::{InputMessage, MessageChange, RequestKey, change_messages};
use agent::record::ThreadRecord;
use values::ids::MessageId;
use values::json::{Object, weight};
use values::message::Message;

/// Lists the items of a conversation, by default the newest first.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items", tag = "openai", params(
    ("conversation_id" = String, Path),
    ("after" = Option<String>, Query, description = "The id of the item before"),
    ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
    ("order" = Option<String>, Query, pattern = "^(asc|desc)$", description = "By default `desc`"),
), responses(
    (status = 200, description = "A list of items", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn list_conversation_items(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let window = take_window(query)?;
    let thread = thread_in(&call, &path).await?;
    let list = match transcript_of(&call, &thread).await? {
        Some(transcript) => Box::pin(transcript.list(&call, &window)).await?,
        None => ItemList::new(Vec::new()),
    };
    let bytes = weight(&list);
    json_with_room(&call, list, bytes).await
}

/// Shows an item of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items/{item_id}", tag = "openai", params(
    ("conversation_id" = String, Path), ("item_id" = String, Path),
), responses(
    (status = 200, description = "The item", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::RunNotFound]))))]
pub(in crate::http) async fn get_conversation_item(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let thread = thread_in(&call, &path).await?;
    let id = path.text("item_id");
    let found = match transcript_of(&call, &thread).await? {
        Some(transcript) => Box::pin(transcript.find(&call, id)).await?,
        None => None,
    };
    let item = found.ok_or_else(|| no_item(None, id))?.body;
    let bytes = weight(&item);
    json_with_room(&call, item, bytes).await
}

/// Adds up to 20 items to a conversation.
///
/// Makes a session that continues that of the conversation with the same context and environment,
/// without a run.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/items", tag = "openai", params(
    ("conversation_id" = String, Path),
    ("Idempotency-Key" = Option<String>, Header),
), request_body(content = OpenAiObject, description = "`items`, as OpenAI describes them"), responses(
    (status = 200, description = "The list of the new items", body = OpenAiObject, headers(("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([
    ProblemCode::ThreadNotFound, ProblemCode::UnsupportedParameter, ProblemCode::TooManyMessages,
    ProblemCode::InvalidHistory, ProblemCode::InvalidAnswers, ProblemCode::AnswersRequired,
    ProblemCode::SessionTooLarge, ProblemCode::RunNotFound, ProblemCode::AgentNotFound,
    ProblemCode::SessionNotFound, ProblemCode::ThreadBusy, ProblemCode::ThreadMoved
]))))]
pub(in crate::http) async fn create_conversation_items(
    call: Call,
    path: PathParameters,
    KeyedBody { key, body, .. }: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let items = CreateConversation::read_items(body, opener(&call))?;
    let thread = thread_in(&call, &path).await?;
    let messages = new_messages(&call, items, thread.session_id).await?;
    if messages.is_empty() {
        return json_with_room(&call, ItemList::new(Vec::new()), 0).await;
    }
    let child = Box::pin(append(&call, &path, messages, key)).await?;
    let session_id = child.bundle.head.session_id;
    let added = call.api.runs.store.new_message_list(&call.tenant, session_id).await?;
    let added = added.unwrap_or_default();
    let list = ItemList::new(items_of(added.iter().map(AsRef::as_ref), None));
    let mut response = json_with_room(&call, list, weight(&added)).await?;
    mark_replay(&mut response, child.is_replay);
    Ok(response)
}

/// Adds messages to a conversation.
async fn append(
    call: &Call,
    path: &PathParameters,
    messages: Vec<InputMessage>,
    key: Option<RequestKey>,
) -> Result<ChildSession, Problem> {
    let runs = &call.api.runs;
    let now = runs.clock.now();
    let messages = messages.into_iter();
    let messages = messages.map(|message| message.into_message(MessageId::generate(&*runs.ids), now));
    let messages: Vec<Arc<Message>> = messages.map(Arc::new).collect();
    let mut attempts = Attempts::default();
    loop {
        let thread = thread_in(call, path).await?;
        let base = match thread.session_id {
            Some(session_id) => runs.sessions.bundle(&call.tenant, session_id).await?,
            None => None,
        };
        let change = MessageChange {
            thread: thread.name,
            retained: base.as_ref().map_or(0, |base| base.history.len()),
            base,
            messages: messages.clone(),
            idempotency: key.clone(),
        };
        let changed = change_messages(runs, &call.tenant, change).await;
        if !attempts.again(&changed) {
            return changed.map_err(|refusal| refused(call, refusal));
        }
    }
}

/// Deletes an item of a conversation. A call goes together with its output.
///
/// Makes a session without the item, without a run. The session before it and the responses stay.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}/items/{item_id}", tag = "openai", params(
    ("conversation_id" = String, Path), ("item_id" = String, Path),
), responses(
    (status = 200, description = "The conversation", body = OpenAiObject),
), extensions(("x-problems" = json!([
    ProblemCode::ThreadNotFound, ProblemCode::RunNotFound, ProblemCode::AnswersRequired, ProblemCode::SessionTooLarge,
    ProblemCode::SessionNotFound, ProblemCode::ThreadBusy, ProblemCode::ThreadMoved
]))))]
pub(in crate::http) async fn delete_conversation_item(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let mut attempts = Attempts::default();
    loop {
        let thread = thread_in(&call, &path).await?;
        let change = Box::pin(removal(&call, &thread, path.text("item_id"))).await?;
        let changed = Box::pin(change_messages(&call.api.runs, &call.tenant, change)).await;
        if !attempts.again(&changed) {
            changed.map_err(|refusal| refused(&call, refusal))?;
            return json_with_room(&call, ConversationObject::from(thread), 0).await;
        }
    }
}

/// Makes the change that removes an item.
async fn removal(call: &Call, thread: &ThreadRecord, id: &str) -> Result<MessageChange, Problem> {
    let transcript = transcript_of(call, thread).await?.ok_or_else(|| no_item(None, id))?;
    if transcript.bundle.waiting().is_some() {
        return Err(waits());
    }
    let found = transcript.find(call, id).await?;
    let (retained, messages) = found
        .and_then(|found| transcript.without(&found))
        .ok_or_else(|| no_item(None, id))?;
    if (retained as u64) < transcript.bundle.head.history_start {
        let words = "a summary of the conversation covers the item, so it can't be deleted";
        return Err(Problem::invalid_field("/item_id", words));
    }
    Ok(MessageChange {
        thread: thread.name.clone(),
        base: Some(transcript.bundle),
        retained,
        messages,
        idempotency: None,
    })
}

/// Reads the session of a thread; `None` if it points to none.
async fn transcript_of(call: &Call, thread: &ThreadRecord) -> Result<Option<Transcript>, Problem> {
    match thread.session_id {
        Some(session_id) => Transcript::of_session(call, session_id).await,
        None => Ok(None),
    }
}

/// Makes the problem of a refused change.
fn refused(call: &Call, refusal: Refusal) -> Problem {
    match refusal {
        Refusal::AnswersRequired(_) => waits(),
        refusal => call.problem(refusal),
    }
}

fn waits() -> Problem {
    let words = "The conversation has open tool calls: answer them with a response first.";
    Problem::new(ProblemCode::AnswersRequired, words)
}
