//! Comparing a session with another one, and with its own hashes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::stream::{Page, PageReader};
use super::view::found;
use crate::fair_share::Share;
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::in_flight::{reading, respond_with};
use crate::http::paging::PAGE_BYTES;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::{Problem, ProblemBody};
use crate::ids::SessionId;
use crate::json::{count_reaching, json_length};
use crate::session::{Bundle, BundleDiff, StatesDiff, ValueChange, diff_bundles, diff_states};
use crate::store::VerifyReport;
use crate::tenant::TenantId;

/// How a session, the left one, differs from another.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionDiff {
    /// The session in the path.
    left_session_id: SessionId,
    /// The other one.
    right_session_id: SessionId,
    /// The differences.
    #[serde(flatten)]
    diff: BundleDiff,
    /// Whether these are all differences. A list that is too long ends with the item that reaches 1 MiB.
    complete: bool,
}

/// What the verification of a session found.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Verification {
    /// The session.
    session_id: SessionId,
    /// Whether everything is as its hash says.
    valid: bool,
    /// What was checked and found.
    #[serde(flatten)]
    report: VerifyReport,
}

impl SessionDiff {
    /// Compares two bundles that hold all of their messages, however many differences there are.
    pub fn whole(left: &Bundle, right: &Bundle) -> Result<Self, serde_json::Error> {
        Ok(Self {
            left_session_id: left.head.session_id,
            right_session_id: right.head.session_id,
            diff: diff_bundles(left, right)?,
            complete: true,
        })
    }
}

/// Compares two sessions: messages, context and environment. Each list ends with the item that reaches 1 MiB.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/diff/{other}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("other" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "Where the sessions differ", body = SessionDiff),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn diff_sessions(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    query.finish()?;
    let (left_session_id, right_session_id) = (path.id("session_id")?, path.id("other")?);
    let pair = Pair {
        api: &api,
        tenant: &tenant,
        sessions: [left_session_id, right_session_id],
    };
    let (mut states, share) = pair.states().await?;
    let shared = pair.shared_messages().await?;
    let [left, right] = [pair.rest(0, shared).await?, pair.rest(1, shared).await?];
    let is_cut = [cut(&mut states.context), cut(&mut states.environment)];
    let diff = SessionDiff {
        left_session_id,
        right_session_id,
        complete: left.is_last() && right.is_last() && is_cut == [false, false],
        diff: BundleDiff {
            shared_messages: shared,
            left_messages: left.messages.messages,
            right_messages: right.messages.messages,
            context: states.context,
            environment: states.environment,
        },
    };
    respond_with(share, (StatusCode::OK, HeaderMap::new()), &diff)
}

/// Two sessions that are compared, of which no more is read at a time than a page.
struct Pair<'a> {
    api: &'a Arc<Api>,
    tenant: &'a TenantId,
    sessions: [SessionId; 2],
}

impl Pair<'_> {
    /// Compares the states, and holds the share that this takes.
    async fn states(&self) -> Result<(StatesDiff, Share), Problem> {
        let store = &self.api.service.store;
        let [left, right] = self.sessions;
        let bytes = store.states_size(self.tenant, left).await? + store.states_size(self.tenant, right).await?;
        let share = self.api.in_flight.take_soon(self.tenant, reading(bytes)).await?;
        let bundle = store.states_load(self.tenant, left).await?;
        let left = found(self.api, self.tenant, left, bundle).await?;
        let bundle = store.states_load(self.tenant, right).await?;
        let right = found(self.api, self.tenant, right, bundle).await?;
        let diff = diff_states(&left, &right).map_err(Problem::internal)?;
        Ok((diff, share))
    }

    /// Counts the messages that both begin with.
    async fn shared_messages(&self) -> Result<u64, Problem> {
        let mut shared = self.shared_segments().await?;
        loop {
            let [left, right] = [self.page(0, shared).await?, self.page(1, shared).await?];
            let (left, right) = (&left.messages.messages, &right.messages.messages);
            let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
            shared += same as u64;
            if same == 0 || same < left.len().min(right.len()) {
                return Ok(shared);
            }
        }
    }

    /// Counts the messages of the stored segments that both begin with, without reading them.
    async fn shared_segments(&self) -> Result<u64, Problem> {
        let store = &self.api.service.store;
        let [left_id, right_id] = self.sessions;
        let mut shared = 0;
        loop {
            let left = store.segment_list(self.tenant, left_id, shared, u32::MAX).await?;
            let right = store.segment_list(self.tenant, right_id, shared, u32::MAX).await?;
            let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
            let same = left
                .iter()
                .zip(&right)
                .take_while(|(left, right)| left.place == right.place);
            match same.last().map(|(segment, _)| segment.end()) {
                Some(end) if end > shared => shared = end,
                _ => return Ok(shared),
            }
        }
    }

    /// Reads the messages of a session after those that both begin with.
    async fn rest(&self, index: usize, shared: u64) -> Result<Page, Problem> {
        let mut page = self.page(index, shared).await?;
        page.cut();
        Ok(page)
    }

    async fn page(&self, index: usize, from: u64) -> Result<Page, Problem> {
        let session_id = self.sessions[index];
        let mut reader = PageReader::new(self.api, self.tenant, session_id);
        let page = reader.read(from, u32::MAX).await?;
        found(self.api, self.tenant, session_id, page).await
    }
}

/// Leaves the changes up to the one with which they reach the bytes of a page. Tells whether there were more.
fn cut(changes: &mut Vec<ValueChange>) -> bool {
    let all = changes.len();
    let fitting = count_reaching(PAGE_BYTES, changes.iter().map(json_length));
    changes.truncate(fitting);
    fitting < all
}

/// Computes all hashes of a session and its ancestors again.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/verify", tag = "sessions", params(("session_id" = uuid::Uuid, Path)), responses(
    (status = 200, description = "What was checked and found", body = Verification),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn verify_session(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Verification>, Problem> {
    query.finish()?;
    let session_id = path.id("session_id")?;
    let report = api.service.store.session_verify(&tenant, session_id).await?;
    let report = found(&api, &tenant, session_id, report).await?;
    Ok(Json(Verification {
        session_id,
        valid: report.faults.is_empty(),
        report,
    }))
}
