//! `GET /v1/sessions/{session_id}` and its messages.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::stream::PageReader;
use super::view::{Include, SessionView, found};
use super::{etag, stream};
use crate::http::auth::Call;
use crate::http::in_flight::{held, json_response, reading, respond_with};
use crate::http::paging::{ListPage, MessageIndex, Paging, first_index};
use crate::http::parameters::{NoParameters, PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use store::retention::Ancestor;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::message::Message;

/// A page of messages.
type Messages = ListPage<Message>;

/// Some messages of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MessageList {
    #[serde(flatten)]
    #[schema(value_type = Messages)]
    page: ListPage<Arc<Message>>,
    /// The index of the first of them in the whole history.
    from: u64,
    /// The number of messages in the whole history.
    total: u64,
}

/// Shows a session with its states.
#[utoipa::path(get, path = "/v1/sessions/{session_id}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("include" = Option<String>, Query, pattern = "^((environment_state|context_state|message_history_state)(,|$))*$", description = "Of `environment_state`, `context_state`, `message_history_state`, joined by commas; by default all"),
    ("If-None-Match" = Option<String>, Header),
), responses(
    (status = 200, description = "The session", body = SessionView, headers(("ETag"))),
    (status = 304, description = "The caller has it"),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn get_session(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let include = Include::take(&mut query)?;
    query.finish()?;
    let session_id = path.id("session_id")?;
    if include.is_nothing() || headers.contains_key(header::IF_NONE_MATCH) {
        let head = call.api.runs.store.session_lookup(&call.tenant, session_id).await?;
        let head = found(&call, session_id, head).await?;
        if etag::caller_has(&headers, head.root_hash) {
            return Ok((StatusCode::NOT_MODIFIED, etag::headers(head.root_hash)).into_response());
        }
        if include.is_nothing() {
            return Ok((etag::headers(head.root_hash), Json(SessionView::bare(head))).into_response());
        }
    }
    respond_whole(&call, session_id, include).await
}

/// Responds with the states, and streams the messages from the store.
pub(super) async fn respond_whole(call: &Call, session_id: SessionId, include: Include) -> Result<Response, Problem> {
    let bytes = call.api.runs.store.states_size(&call.tenant, session_id).await?;
    let mut reader = PageReader::new(call, session_id);
    let plan = if include.messages() {
        Some(found(call, session_id, reader.plan(0, u32::MAX).await?).await?)
    } else {
        None
    };
    let cost = plan.as_ref().map_or(0, |plan| plan.cost);
    let cost = reading(bytes).saturating_add(cost);
    let mut share = call.api.in_flight.take_soon(&call.tenant, cost).await?;
    let bundle = call.api.runs.store.states_load(&call.tenant, session_id).await?;
    let bundle = found(call, session_id, bundle).await?;
    let headers = etag::headers(bundle.head.root_hash);
    let view = SessionView::new(&bundle, include.without_messages());
    let Some(plan) = plan else {
        return Ok((headers, respond_with(share, view).await?).into_response());
    };
    let encoded = by_size(&call.tenant, bytes, move || serde_json::to_vec(&view)).await;
    let mut text = encoded.map_err(Problem::internal)?;
    text.pop();
    text.extend_from_slice(br#","message_history_state":{"messages":["#);
    let page = found(call, session_id, reader.load(plan).await?).await?;
    // The room that the text does not use belongs to the page.
    let mut page_share = call.api.in_flight.take(&call.tenant, 0).await;
    page_share.set(share.amount().saturating_sub(text.len()));
    share.set(text.len());
    let messages = stream::Messages::new(reader, page, page_share);
    let body = stream::body(held(text.into(), share), messages);
    Ok((headers, json_response(body)).into_response())
}

/// Lists the messages of a session, oldest first. A page may end before its limit, when it has many
/// bytes.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/messages", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("from" = Option<u32>, Query, description = "The index of the first message, from 0; not together with `cursor`"),
    ("before" = Option<u32>, Query, description = "The index after the last message; an index beyond the end stands for the end; not together with `from` or `cursor`"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of messages", body = MessageList),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn list_messages(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let range = MessageRange::take(query)?;
    let session_id = path.id("session_id")?;
    let (share, list) = range.read(&call, session_id).await?;
    respond_with(share, list).await
}

/// Shows the session that added a message: the session in the path or an ancestor. A removed one
/// has its ids only.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/messages/{index}/session", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("index" = u32, Path, description = "The index of the message in the whole history, from 0"),
), responses(
    (status = 200, description = "The session that added the message", body = Ancestor),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn get_message_session(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<Ancestor>, Problem> {
    let session_id = path.id("session_id")?;
    let index = path.number::<u32>("index")?;
    let store = &call.api.runs.store;
    let added_by = store.session_lookup_by_message(&call.tenant, session_id, index.into());
    if let Some(added_by) = added_by.await? {
        return Ok(Json(added_by));
    }
    let head = store.session_lookup(&call.tenant, session_id).await?;
    let count = found(&call, session_id, head).await?.message_count;
    Err(invalid("index", format!("the session has {count} messages")))
}

/// Where a page of messages begins or ends, and its most messages.
pub(in crate::http) struct MessageRange {
    edge: Edge,
    limit: u32,
}

/// The fixed edge of a page.
#[derive(Clone, Copy)]
enum Edge {
    /// The index of its first message.
    From(u64),
    /// The index after its last message.
    Before(u64),
}

impl MessageRange {
    /// Makes the range of at most `limit` messages from an index.
    pub(in crate::http) fn new(from: u64, limit: u32) -> Self {
        let edge = Edge::From(from);
        Self { edge, limit }
    }

    /// Takes `from`, `before`, `limit` and `cursor`.
    pub(in crate::http) fn take(mut query: QueryParameters) -> Result<Self, Problem> {
        let (from, before) = (query.number::<u32>("from")?, query.number::<u32>("before")?);
        let Paging { after, limit } = Paging::<MessageIndex>::take(query)?;
        let edge = match before {
            None => Edge::From(first_index(after.map(|MessageIndex(index)| index), from)?),
            Some(before) if from.is_none() && after.is_none() => Edge::Before(before.into()),
            Some(_) => {
                let words = "it determines where the page ends: leave `from` and `cursor` out";
                return Err(invalid("before", words));
            }
        };
        Ok(Self { edge, limit })
    }

    /// Reads the page of a session, and returns it with its share.
    pub(in crate::http) async fn read(
        &self,
        call: &Call,
        session_id: SessionId,
    ) -> Result<(Share, MessageList), Problem> {
        let mut reader = PageReader::new(call, session_id);
        let page = match self.edge {
            Edge::From(index) => reader.read(index, self.limit).await?,
            Edge::Before(index) => reader.read_before(index, self.limit).await?,
        };
        let (page, share) = found(call, session_id, page).await?;
        let (edge, bytes) = (self.edge, page.bytes as u64);
        let cut = move || match edge {
            Edge::From(_) => page.cut(),
            Edge::Before(_) => page.cut_backwards(),
        };
        let page = by_size(&call.tenant, bytes, cut).await;
        let next = (!page.is_last()).then(|| MessageIndex(page.end()));
        let list = MessageList {
            page: ListPage::with_cursor(page.messages, next.as_ref()),
            from: page.from,
            total: page.total,
        };
        Ok((share, list))
    }

    /// Returns an empty page.
    pub(in crate::http) fn empty(&self) -> MessageList {
        MessageList {
            page: ListPage::with_cursor(Vec::new(), None::<&MessageIndex>),
            from: match self.edge {
                Edge::From(index) => index,
                Edge::Before(_) => 0,
            },
            total: 0,
        }
    }
}
