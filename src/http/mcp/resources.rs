//! Sessions and their files as resources. A committed session never changes, so a client may cache
//! it for a day.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde::Serialize;

use super::errors::{invalid, not_found, resource_error};
use super::resource_address::ResourceAddress;
use super::server::McpServer;
use crate::http::file_problems::tree_problem;
use crate::http::in_flight::SMALL;
use crate::http::paging::{decode_cursor, encode_cursor};
use crate::http::problem::Problem;
use crate::http::sessions::files::download::file_entry;
use crate::http::sessions::files::list::directory_room;
use crate::http::sessions::files::media_types::media_type;
use crate::http::sessions::files::view::FileEntry;
use crate::http::sessions::show::{MessageList, MessageRange};
use crate::http::sessions::view::absent_session;
use crate::run::files::{list_after, open_files};
use store::Page;
use store::sessions::SessionFilter;
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::session::SessionHead;
use workspace::{Entry, FilePath, TreeError};

/// The most sessions of a page.
const PAGE: u32 = 50;
/// The most messages of a resource.
const MESSAGES: u32 = 50;
/// The most entries of a directory.
const ENTRIES: usize = 200;
/// The largest file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// How often a file is in memory: its chunks, its bytes, as base64 and as JSON.
const COPIES: u64 = 5;
/// How long a client may use a list of sessions, in milliseconds.
const LIST_TTL_MS: u64 = 1_000;
/// The same for resources that never change.
const FIXED_TTL_MS: u64 = 86_400_000;
const JSON: &str = "application/json";

/// A session as a resource.
#[derive(Serialize)]
struct SessionContent {
    #[serde(flatten)]
    head: SessionHead,
    /// The newest messages.
    messages: MessageList,
    /// The address of the files.
    files: String,
}

/// A directory as a resource.
#[derive(Serialize)]
struct DirectoryContent {
    entries: Vec<FileEntry>,
    /// Whether the directory has more entries.
    truncated: bool,
}

/// Lists the sessions of the tenant, newest first.
pub(super) async fn list(server: &McpServer, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let before = cursor.map(|cursor| decode_cursor(&cursor).ok_or_else(|| invalid("not a cursor of this list")));
    let page = Page {
        before: before.transpose()?,
        limit: PAGE + 1,
    };
    let call = &server.call;
    let filter = SessionFilter::default();
    let sessions = call.api.runs.store.session_list(&call.tenant, &filter, page).await;
    let mut sessions = sessions.map_err(Problem::from)?;
    let has_more = sessions.len() > PAGE as usize;
    sessions.truncate(PAGE as usize);
    let next = sessions.last().filter(|_| has_more);
    let next = next.map(|head| encode_cursor(&head.session_id));
    let mut result = ListResourcesResult::with_all_items(sessions.iter().map(resource).collect())
        .with_ttl_ms(LIST_TTL_MS)
        .with_cache_scope(CacheScope::Private);
    result.next_cursor = next;
    Ok(result)
}

/// Returns the forms of addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, words: &str| ResourceTemplate::new(uri, name).with_description(words);
    let templates = vec![
        template(
            "session://{session_id}",
            "session",
            "A session with its newest 50 messages.",
        )
        .with_mime_type(JSON),
        template(
            "session://{session_id}/messages/{from}",
            "messages",
            "Up to 50 messages of a session, from an index on.",
        )
        .with_mime_type(JSON),
        template(
            "session://{session_id}/files/{+directory}/",
            "directory",
            "The names in a directory of a session; session://{session_id}/files/ is the root.",
        )
        .with_mime_type(JSON),
        template("session://{session_id}/files/{+path}", "file", "A file of a session."),
    ];
    ListResourceTemplatesResult::with_all_items(templates)
        .with_ttl_ms(FIXED_TTL_MS)
        .with_cache_scope(CacheScope::Private)
}

/// Reads a resource.
pub(super) async fn read(server: &McpServer, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let address = ResourceAddress::parse(uri).ok_or_else(|| not_found(uri))?;
    let content = match &address {
        ResourceAddress::Session(id) => session(server, *id, uri).await,
        ResourceAddress::Messages(id, from) => messages(server, *id, *from, uri).await,
        ResourceAddress::Directory(id, path) => directory(server, *id, path.as_ref(), uri).await,
        ResourceAddress::File(id, path) => file(server, *id, path, uri).await,
    };
    let content = content.map_err(|problem| match problem {
        Unreadable::Problem(problem) => resource_error(&problem, uri),
        Unreadable::TooLarge(words) => invalid(words),
    })?;
    Ok(ReadResourceResult::new(vec![content])
        .with_ttl_ms(FIXED_TTL_MS)
        .with_cache_scope(CacheScope::Private))
}

/// Why a resource can't be read.
enum Unreadable {
    Problem(Problem),
    TooLarge(String),
}

impl From<Problem> for Unreadable {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

fn resource(head: &SessionHead) -> Resource {
    let words = format!(
        "A session of the agent {} with {} messages, of {}.",
        head.agent,
        head.message_count,
        head.created_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    );
    Resource::new(
        ResourceAddress::Session(head.session_id).uri(),
        head.session_id.to_string(),
    )
    .with_title(head.agent.clone())
    .with_description(words)
    .with_mime_type(JSON)
}

async fn session(server: &McpServer, id: SessionId, uri: &str) -> Result<ResourceContents, Unreadable> {
    let call = &server.call;
    let head = call.api.runs.store.session_lookup(&call.tenant, id).await;
    let Some(head) = head.map_err(Problem::from)? else {
        return Err(absent_session(call, id).await.into());
    };
    let from = head.message_count.saturating_sub(u64::from(MESSAGES));
    let (room, messages) = MessageRange::new(from, MESSAGES).read(call, id).await?;
    server.hold(room);
    let files = ResourceAddress::Directory(id, None).uri();
    json_content(&SessionContent { head, messages, files }, uri)
}

async fn messages(server: &McpServer, id: SessionId, from: u64, uri: &str) -> Result<ResourceContents, Unreadable> {
    let (room, messages) = MessageRange::new(from, MESSAGES).read(&server.call, id).await?;
    server.hold(room);
    json_content(&messages, uri)
}

async fn directory(
    server: &McpServer,
    id: SessionId,
    path: Option<&FilePath>,
    uri: &str,
) -> Result<ResourceContents, Unreadable> {
    let call = &server.call;
    let tree = open_files(&call.api.runs, &call.tenant, id).await;
    let tree = tree.map_err(Problem::from)?;
    let room = directory_room(&tree, path).await.map_err(tree_problem)?;
    server.hold(call.api.in_flight.take_soon(&call.tenant, room).await?);
    let found = list_after(&tree, path, false, None, ENTRIES + 1).await;
    let mut found = found.map_err(tree_problem)?;
    let truncated = found.len() > ENTRIES;
    found.truncate(ENTRIES);
    let entries = found.into_iter().map(|(path, entry)| FileEntry::new(path, entry));
    let content = DirectoryContent {
        entries: entries.collect(),
        truncated,
    };
    json_content(&content, uri)
}

async fn file(server: &McpServer, id: SessionId, path: &FilePath, uri: &str) -> Result<ResourceContents, Unreadable> {
    let call = &server.call;
    let tree = open_files(&call.api.runs, &call.tenant, id).await;
    let tree = tree.map_err(Problem::from)?;
    let entry = file_entry(&tree, path).await.map_err(tree_problem)?;
    let Entry::File { size, .. } = entry else {
        return Err(tree_problem(TreeError::NotAFile { path: path.clone() }).into());
    };
    if size > MAX_FILE_BYTES {
        let words = format!(
            "the file has {size} bytes, and a resource has at most {MAX_FILE_BYTES}: GET /v1/sessions/{id}/files/{path} reads it"
        );
        return Err(Unreadable::TooLarge(words));
    }
    let room = usize::try_from(size * COPIES).unwrap_or(usize::MAX);
    if room > SMALL {
        server.hold(call.api.in_flight.take_soon(&call.tenant, room).await?);
    }
    let bytes = tree.read_entry(&entry).await.map_err(tree_problem)?;
    let (uri, kind) = (uri.to_owned(), media_type(path.name()));
    let content = move || match std::str::from_utf8(&bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(kind),
        Err(_) => ResourceContents::blob(STANDARD.encode(&bytes), uri).with_mime_type(kind),
    };
    Ok(by_size(&call.tenant, size, content).await)
}

fn json_content(value: &impl Serialize, uri: &str) -> Result<ResourceContents, Unreadable> {
    let text = serde_json::to_string(value).map_err(Problem::internal)?;
    Ok(ResourceContents::text(text, uri).with_mime_type(JSON))
}
