//! Conversations: threads, with the messages of the session that each of them points to.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use serde::Serialize;

use super::body::{DeletedObject, OpenAiObject, json, opener};
use super::lists::take_window;
use super::references::resolve;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::ItemId;
use crate::http::faces::openai::request::{CreateConversation, arrange, no_conversation};
use crate::http::faces::openai::stored_items::{StoredItem, items_of};
use crate::http::json_body::JsonBody;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::run::import::{ImportContext, ImportRequest, import_session};
use crate::run::refusal::Refusal;
use crate::run::{InputMessage, NewThread, create_thread};
use agent::record::{ThreadName, ThreadRecord};
use store::threads::{MetadataChange, ThreadDelete, ThreadDetails, ThreadPatch, ThreadPatched};
use tasks::off_thread::by_size;
use values::ids::{MessageId, RunId, SessionId};
use values::json::{Object, Value};
use values::message::Message;
use values::session::{EnvironmentState, Setting};

/// A conversation.
#[derive(Debug, Serialize)]
struct ConversationObject {
    id: String,
    object: &'static str,
    created_at: i64,
    metadata: BTreeMap<String, String>,
}

/// Creates a conversation: a thread with a new name. Its items become a session.
#[utoipa::path(post, path = "/v1/conversations", tag = "openai",
    request_body(content = OpenAiObject, description = "`metadata` and `items`, as OpenAI describes them"),
    responses((status = 200, description = "The conversation", body = OpenAiObject)),
    extensions(("x-problems" = json!([
        ProblemCode::UnsupportedParameter, ProblemCode::TooManyMessages, ProblemCode::InvalidHistory,
        ProblemCode::SessionTooLarge, ProblemCode::RunNotFound, ProblemCode::AgentNotFound,
        ProblemCode::NotAllowed, ProblemCode::SessionNotFound
    ]))))]
pub(in crate::http) async fn create_conversation(
    call: Call,
    JsonBody(body): JsonBody<Object>,
) -> Result<Response, Problem> {
    let api = &call.api;
    let (opener, most) = (opener(&call), api.limits.max_input_messages);
    let request = CreateConversation::read(body, opener, most)?;
    let items = resolve(&call, request.items).await?;
    let messages = arrange(items, &BTreeSet::new(), "items")?.messages;
    let session_id = Box::pin(imported(&call, messages)).await?;
    let name = format!("conv_{}", api.runs.ids.next_uuid().simple());
    let new = NewThread {
        name: Some(name.parse().map_err(Problem::internal)?),
        details: ThreadDetails {
            title: None,
            metadata: request.metadata,
        },
        session_id,
        idempotency: None,
    };
    let created = create_thread(&api.runs, &call.tenant, new).await?;
    json(&call, ConversationObject::from(created.thread), 0).await
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
    json(&call, ConversationObject::from(thread), 0).await
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
        ThreadPatched::Changed(thread) => json(&call, ConversationObject::from(thread), 0).await,
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
        ThreadDelete::Deleted => (),
        ThreadDelete::Absent => return Err(no_conversation(name.as_str())),
        ThreadDelete::Busy(run_id) => return Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
    let deleted = DeletedObject::new("conversation.deleted", name.to_string());
    json(&call, deleted, 0).await
}

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
    let bundle = match thread.session_id {
        Some(session_id) => call.api.runs.sessions.whole_bundle(&call.tenant, session_id).await?,
        None => None,
    };
    let bytes = bundle.as_ref().map_or(0, |bundle| bundle.history.bytes());
    let list = move || {
        let messages = bundle.iter().flat_map(|bundle| bundle.history.iter());
        let messages = messages.filter(|message| message.tags.section.is_messages());
        window.of(messages.flat_map(|message| conversation_items(message)).collect())
    };
    let list = by_size(&call.tenant, bytes as u64, list).await;
    json(&call, list, bytes).await
}

/// Returns the items of a message. Their ids are those of the message, with the index of the item.
fn conversation_items(message: &Message) -> Vec<StoredItem> {
    let run_id = RunId::from_uuid(message.id.as_uuid());
    let mut index = 0;
    items_of(message, |kind| {
        index += 1;
        ItemId { kind, run_id, index }
    })
}

async fn thread_in(call: &Call, path: &PathParameters) -> Result<ThreadRecord, Problem> {
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
