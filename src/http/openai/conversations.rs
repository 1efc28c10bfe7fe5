//! Conversations, which are threads.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use serde::Serialize;

use super::body::{DeletedObject, OpenAiObject, opener};
use super::references::resolve;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::request::{CreateConversation, Item, arrange, no_conversation};
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::json_body::JsonBody;
use crate::http::json_response::json_with_room;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::import::{ImportContext, ImportRequest, import_session};
use crate::run::refusal::Refusal;
use crate::run::{CreatedThread, InputMessage, NewName, NewThread, RequestKey, create_thread, created_before};
use agent::record::{ThreadName, ThreadRecord};
use store::threads::{MetadataChange, ThreadDelete, ThreadDetails, ThreadPatch, ThreadPatched};
use values::ids::{MessageId, SessionId};
use values::json::{Object, Value};
use values::session::{EnvironmentState, Setting};

/// The name of a new conversation.
const NEW_NAME: NewName = NewName::Made(ThreadName::of_conversation);

/// A conversation.
#[derive(Debug, Serialize)]
pub(super) struct ConversationObject {
    id: String,
    object: &'static str,
    created_at: i64,
    metadata: BTreeMap<String, String>,
}

/// Creates a conversation: a thread with a new name. Its items become a session.
#[utoipa::path(post, path = "/v1/conversations", tag = "openai", params(
    ("Idempotency-Key" = Option<String>, Header),
), request_body(content = OpenAiObject, description = "`metadata` and `items`, as OpenAI describes them"),
    responses((status = 200, description = "The conversation", body = OpenAiObject, headers(("Idempotency-Replayed")))),
    extensions(("x-problems" = json!([
        ProblemCode::UnsupportedParameter, ProblemCode::TooManyMessages, ProblemCode::InvalidHistory,
        ProblemCode::InvalidAnswers, ProblemCode::SessionTooLarge, ProblemCode::RunNotFound, ProblemCode::AgentNotFound,
        ProblemCode::NotAllowed, ProblemCode::SessionNotFound
    ]))))]
pub(in crate::http) async fn create_conversation(
    call: Call,
    KeyedBody { key, body, .. }: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let created = match earlier(&call, key.as_ref()).await? {
        Some(created) => created,
        None => Box::pin(create(&call, body, key)).await?,
    };
    let mut response = json_with_room(&call, ConversationObject::from(created.thread), 0).await?;
    mark_replay(&mut response, created.is_replay);
    Ok(response)
}

/// Finds the conversation of an earlier request with the key.
async fn earlier(call: &Call, key: Option<&RequestKey>) -> Result<Option<CreatedThread>, Problem> {
    let Some(key) = key else { return Ok(None) };
    Ok(created_before(&call.api.runs, &call.tenant, &NEW_NAME, key).await?)
}

async fn create(call: &Call, body: Object, key: Option<RequestKey>) -> Result<CreatedThread, Problem> {
    let api = &call.api;
    let (opener, most) = (opener(call), api.limits.max_input_messages);
    let request = CreateConversation::read(body, opener, most)?;
    let messages = new_messages(call, request.items, None).await?;
    let session_id = Box::pin(imported(call, messages)).await?;
    let new = NewThread {
        name: NEW_NAME,
        details: ThreadDetails {
            title: None,
            metadata: request.metadata,
        },
        session_id,
        idempotency: key,
    };
    Ok(create_thread(&api.runs, &call.tenant, new).await?)
}

/// Makes messages of the items that a request adds to a conversation, whose session is `base`.
pub(super) async fn new_messages(
    call: &Call,
    items: Vec<(usize, Item)>,
    base: Option<SessionId>,
) -> Result<Vec<InputMessage>, Problem> {
    let items = Box::pin(resolve(call, items, "items", base)).await?;
    let arranged = arrange(items, &BTreeSet::new(), "items")?;
    match arranged.decisions.first() {
        None => Ok(arranged.messages),
        Some(decision) => {
            let words = "a response answers a request for an approval: send this item as its input";
            let pointer = format!("/items/{}", decision.index);
            Err(Problem::of_field(ProblemCode::UnsupportedParameter, pointer, words))
        }
    }
}

/// Makes a session of messages; `None` if there are none.
async fn imported(call: &Call, messages: Vec<InputMessage>) -> Result<Option<SessionId>, Problem> {
    if messages.is_empty() {
        return Ok(None);
    }
    let runs = &call.api.runs;
    let now = runs.clock.now();
    let messages = messages.into_iter();
    let request = ImportRequest {
        agent: None,
        environment: EnvironmentState::default(),
        context: ImportContext::default(),
        messages: messages
            .map(|message| message.into_message(MessageId::generate(&*runs.ids), now))
            .collect(),
        thread: None,
        idempotency: None,
    };
    let imported = import_session(runs, call.tenant.clone(), request).await?;
    Ok(Some(imported.bundle.head.session_id))
}

/// Shows a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}", tag = "openai", params(
    ("conversation_id" = String, Path),
), responses(
    (status = 200, description = "The conversation", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn get_conversation(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let thread = thread_in(&call, &path).await?;
    json_with_room(&call, ConversationObject::from(thread), 0).await
}

/// Replaces the metadata of a conversation.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}", tag = "openai", params(
    ("conversation_id" = String, Path),
), request_body(content = OpenAiObject, description = "`metadata`, as OpenAI describes it"), responses(
    (status = 200, description = "The conversation", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn update_conversation(
    call: Call,
    path: PathParameters,
    JsonBody(body): JsonBody<Object>,
) -> Result<Response, Problem> {
    let name = name_in(&path)?;
    let patch = ThreadPatch {
        title: Setting::Kept,
        metadata: Some(MetadataChange::Replace(CreateConversation::read_metadata(body)?)),
    };
    let (store, now) = (&call.api.runs.store, call.api.runs.clock.now());
    match store.thread_patch(&call.tenant, &name, &patch, now).await? {
        ThreadPatched::Changed(thread) => {
            call.api.runs.publish_thread(&call.tenant, &thread);
            json_with_room(&call, ConversationObject::from(thread), 0).await
        }
        ThreadPatched::Absent => Err(no_conversation(name.as_str())),
        ThreadPatched::TooLarge(rule) => Err(Problem::invalid_field("/metadata", rule)),
    }
}

/// Deletes a conversation, unless a run is active on it. Its responses stay.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "openai", params(
    ("conversation_id" = String, Path),
), responses(
    (status = 200, description = "It is gone", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::ThreadBusy]))))]
pub(in crate::http) async fn delete_conversation(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let name = name_in(&path)?;
    match call.api.runs.store.thread_delete(&call.tenant, &name).await? {
        ThreadDelete::Deleted => call.api.runs.publish_thread_removed(&call.tenant, &name),
        ThreadDelete::Absent => return Err(no_conversation(name.as_str())),
        ThreadDelete::Busy(run_id) => return Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
    let deleted = DeletedObject::new("conversation.deleted", name.to_string());
    json_with_room(&call, deleted, 0).await
}

/// Finds the thread of the conversation that a path names.
pub(super) async fn thread_in(call: &Call, path: &PathParameters) -> Result<ThreadRecord, Problem> {
    let name = name_in(path)?;
    let thread = call.api.runs.store.thread_lookup(&call.tenant, &name).await?;
    thread.ok_or_else(|| no_conversation(name.as_str()))
}

fn name_in(path: &PathParameters) -> Result<ThreadName, Problem> {
    let id = path.text("conversation_id");
    id.parse().map_err(|_| no_conversation(id))
}

impl From<ThreadRecord> for ConversationObject {
    fn from(thread: ThreadRecord) -> Self {
        // These clients know texts alone.
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let metadata = thread.metadata.into_iter();
        Self {
            id: thread.name.to_string(),
            object: "conversation",
            created_at: thread.created_at.timestamp(),
            metadata: metadata.map(|(key, value)| (key, text(value))).collect(),
        }
    }
}
