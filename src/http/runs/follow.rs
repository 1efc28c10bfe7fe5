//! `GET /v1/runs/{run_id}/events`: the events of an active or ended run, from a given event on.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::event_forms::EventForm;
use super::events;
use super::read::found;
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::guards::within;
use crate::http::headers;
use crate::http::parameters::{PathParameters, QueryParameters, parse_number};
use crate::http::problem::Problem;

/// The header with the number of the last event that a reader has.
const LAST_EVENT_ID: &str = "last-event-id";

/// Streams the events of a run, at work or ended, on any replica.
///
/// The `id` of an event is its number, its `event` the name, its `data` JSON. After the terminal
/// event the stream ends. A reader that is dropped reads a last event `stream.dropped`, which has
/// no `id`. One that comes back with the last event by `Last-Event-ID` is answered 204, after which
/// a browser does not come again.
#[utoipa::path(get, path = "/v1/runs/{run_id}/events", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("after" = Option<i64>, Query, minimum = 0, description = "The number of the last event that the reader has; by default 0, so that the first event comes first"),
    ("Last-Event-ID" = Option<i64>, Header, minimum = 0, description = "The same, as readers of server-sent events send it; it wins over `after`"),
), responses(
    (status = 200, description = "The events, each of which has an `Event` in its line `data`", content((EventForm = "text/event-stream"))),
    (status = 204, description = "The run has ended, and `Last-Event-ID` names its last event or a later one"),
))]
pub(in crate::http) async fn follow_run(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    mut query: QueryParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asked = query.number("after")?.map(i64::unsigned_abs);
    query.finish()?;
    let last_read = last_event_id(&headers)?;
    let after = last_read.or(asked).unwrap_or(0);
    let run_id = path.id("run_id")?;
    let reader = api.take_reader(&tenant)?;
    let following = api.service.runs.followers.follow(&tenant, run_id, after);
    let followed = within(api.limits.request_timeout, following).await??;
    let followed = found(&api, &tenant, run_id, followed).await?;
    if followed.is_over && last_read.is_some() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(events::respond(&api, tenant, followed.events, None, Some(reader)))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(text) = headers::single(headers, LAST_EVENT_ID)? else {
        return Ok(None);
    };
    parse_number(text)
        .map(|number: i64| Some(number.unsigned_abs()))
        .ok_or_else(|| headers::invalid(LAST_EVENT_ID, "not the number of an event"))
}
