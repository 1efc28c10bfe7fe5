//! Lists of sessions: all, ancestors and children. None of them reads states.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::view::{AncestorView, SessionSummaryView, found};
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{Cursor, ListPage, take_cursor, take_limit};
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::ids::SessionId;
use crate::record::ThreadName;
use crate::session::SessionHead;
use crate::store::{Ancestor, Page, SessionFilter, TimeRange};

/// A page of sessions.
type Sessions = ListPage<SessionSummaryView>;
/// A page of a line.
type Line = ListPage<AncestorView>;

/// Lists sessions, newest first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("subagent_of" = Option<uuid::Uuid>, Query, description = "Only of subagents that the agent of this session started"),
    ("thread" = Option<ThreadName>, Query, description = "Only those that runs on this thread have published"),
    ("tips" = Option<bool>, Query, description = "Only sessions that nothing continues"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default 50"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of sessions", body = Sessions),
))]
pub(in crate::http) async fn list_sessions(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    mut query: QueryParameters,
) -> Result<Json<Sessions>, Problem> {
    let filter = SessionFilter {
        agent: query.text("agent")?,
        metadata: take_metadata(&mut query)?,
        created: TimeRange {
            from: query.time("created_from")?,
            until: query.time("created_until")?,
        },
        parent: None,
        subagent_of: query.id("subagent_of")?,
        thread: query.parsed("thread")?,
        tips_only: query.parsed("tips")?.unwrap_or(false),
    };
    let page = Paging::take(query)?;
    let sessions = api
        .service
        .store
        .session_list(&tenant, &filter, page.one_more())
        .await?;
    Ok(page.respond(sessions))
}

/// Lists a session and its ancestors, itself first. A removed one has its ids only.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/lineage", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default 50"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of the line", body = Line),
))]
pub(in crate::http) async fn list_lineage(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Line>, Problem> {
    let page = Paging::take(query)?;
    let session_id = path.id("session_id")?;
    let lineage = api
        .service
        .store
        .session_lineage(&tenant, session_id, page.one_more())
        .await?;
    let lineage = found(&api, &tenant, session_id, lineage).await?;
    let cursor = |ancestor: &Ancestor| Cursor::Session(ancestor.session_id().as_uuid());
    Ok(Json(ListPage::new(lineage, page.limit, cursor, AncestorView::from)))
}

/// Lists the sessions that continue a session directly, newest first.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/children", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default 50"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of sessions", body = Sessions),
))]
pub(in crate::http) async fn list_children(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Sessions>, Problem> {
    let page = Paging::take(query)?;
    let session_id = path.id("session_id")?;
    let parent = api.service.store.session_lookup(&tenant, session_id).await?;
    found(&api, &tenant, session_id, parent).await?;
    let filter = SessionFilter {
        parent: Some(session_id),
        ..SessionFilter::default()
    };
    Ok(page.respond(
        api.service
            .store
            .session_list(&tenant, &filter, page.one_more())
            .await?,
    ))
}

/// Where a page of sessions begins and how long it is.
struct Paging {
    before: Option<SessionId>,
    limit: u32,
}

impl Paging {
    fn take(mut query: QueryParameters) -> Result<Self, Problem> {
        let limit = take_limit(&mut query)?;
        let before = take_cursor(&mut query, |cursor| match cursor {
            Cursor::Session(id) => Some(SessionId::from_uuid(id)),
            _ => None,
        })?;
        query.finish()?;
        Ok(Self { before, limit })
    }

    fn one_more(&self) -> Page<SessionId> {
        Page {
            before: self.before,
            limit: self.limit + 1,
        }
    }

    fn respond(&self, sessions: Vec<SessionHead>) -> Json<Sessions> {
        let cursor = |head: &SessionHead| Cursor::Session(head.session_id.as_uuid());
        Json(ListPage::new(sessions, self.limit, cursor, SessionSummaryView::from))
    }
}
