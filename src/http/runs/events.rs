//! `GET /v1/runs/{run_id}/events`, and every other stream of the events of a run in their own form.
//! A stream ends after the terminal event.

use std::future::ready;
use std::pin::pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::time::timeout;

use super::event_forms::EventForm;
use super::show::found;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::event_stream::{FrameReader, NextFrames, event_stream};
use crate::http::frames::{NoRoom, RunFrames, write_data};
use crate::http::guards::within;
use crate::http::headers;
use crate::http::parameters::{PathParameters, QueryParameters, parse_number};
use crate::http::problem::Problem;
use crate::run::CallerGuard;
use crate::run::read::{Followed, Follower, follow};
use tasks::fair_share::Share;
use values::ids::RunId;
use values::limits::TenantShare;

/// The header with the number of the last event that a reader received.
const LAST_EVENT_ID: &str = "last-event-id";
/// How long a reader may hold room while it reads the event again.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);

/// The last event of a reader that is dropped. It is about the reader, not the run, so it has no
/// number.
const DROPPED: &str = "stream.dropped";

/// Streams the events of a run, at work or ended, on any replica.
///
/// The `id` of an event is its number, its `event` the name, its `data` JSON. After the terminal
/// event the stream ends. A reader that is dropped reads a last event `stream.dropped`, which has
/// no `id`. A reader that reconnects after the terminal event, by `Last-Event-ID`, gets 204, after
/// which a browser does not reconnect.
#[utoipa::path(get, path = "/v1/runs/{run_id}/events", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("after" = Option<i64>, Query, minimum = 0, description = "The number of the last event that the reader has; by default 0, so that the first event comes first"),
    ("Last-Event-ID" = Option<i64>, Header, minimum = 0, description = "The same, as readers of server-sent events send it; it wins over `after`"),
), responses(
    (status = 200, description = "The events, each of which has an `Event` in its line `data`", content((EventForm = "text/event-stream"))),
    (status = 204, description = "The run has ended, and `Last-Event-ID` names its last event or a later one"),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::InvalidHeader, ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn follow_run(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asked = query.number("after")?.map(i64::unsigned_abs);
    query.finish()?;
    let last_read = last_event_id(&headers)?;
    let after = last_read.or(asked).unwrap_or(0);
    let run_id = path.id("run_id")?;
    let reader = call.api.take_reader(&call.tenant)?;
    let following = follow(&call.api.runs, &call.tenant, run_id, after);
    let followed = within(call.api.limits.request_timeout, following).await??;
    let followed = found(&call, run_id, followed).await?;
    if followed.is_over && last_read.is_some() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(respond(call, followed.events, None, Some(reader)))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(text) = headers::single(headers, LAST_EVENT_ID)? else {
        return Ok(None);
    };
    parse_number(text)
        .map(|number: i64| Some(number.unsigned_abs()))
        .ok_or_else(|| headers::invalid(LAST_EVENT_ID, "not the number of an event"))
}

/// Makes the response of a stream of events. Dropping the response also drops the caller's guard.
pub(super) fn respond(
    call: Call,
    events: Follower,
    caller: Option<CallerGuard>,
    counted: Option<TenantShare>,
) -> Response {
    let reader = Reader {
        last: events.after(),
        frames: call.api.frames.of(events.run_id()),
        call: call.clone(),
        events,
        caller,
        _counted: counted,
        room: None,
    };
    event_stream(call, reader)
}

/// The reader of a stream.
struct Reader {
    call: Call,
    /// The number of the last event that was sent.
    last: u64,
    events: Follower,
    frames: RunFrames,
    /// The guard of the caller, if the stream is the response to the request for the run.
    caller: Option<CallerGuard>,
    /// Counts the reader. The caller that started the run is not counted, since the run itself is.
    _counted: Option<TenantShare>,
    /// Room for a large event.
    room: Option<Share>,
}

impl FrameReader for Reader {
    async fn next(&mut self) -> Option<NextFrames> {
        loop {
            let followed = self.read().await?;
            if let Some(caller) = &self.caller {
                caller.note_sent(&followed);
            }
            let event = match followed {
                Followed::Event(event) => event,
                Followed::Dropped { reason } => {
                    let bytes = dropped_frame(self.events.run_id(), reason, self.last);
                    return Some(NextFrames { bytes, is_last: true });
                }
            };
            let (tenant, in_flight) = (&self.call.tenant, &self.call.api.in_flight);
            match self.frames.encode(in_flight, tenant, &event, &mut self.room).await {
                Ok(bytes) => {
                    self.last = event.sequence;
                    let is_last = event.payload.is_terminal();
                    return Some(NextFrames { bytes, is_last });
                }
                Err(NoRoom { bytes }) => {
                    // The event is read again later, so that it takes no memory while it waits for
                    // room.
                    self.events.take_back(&event);
                    drop(event);
                    self.room = Some(in_flight.take(tenant, bytes).await);
                }
            }
        }
    }

    fn dropped(&mut self, reason: &'static str) -> impl Future<Output = Bytes> + Send {
        if let Some(caller) = &self.caller {
            caller.note_sent(&Followed::Dropped { reason });
        }
        ready(dropped_frame(self.events.run_id(), reason, self.last))
    }
}

impl Reader {
    /// Reads the next event. Releases the room for it if it does not arrive soon.
    async fn read(&mut self) -> Option<Followed> {
        let mut next = pin!(self.events.next());
        if self.room.is_some() {
            if let Ok(followed) = timeout(ROOM_PATIENCE, &mut next).await {
                return followed;
            }
            self.room = None;
        }
        next.await
    }
}

#[derive(Serialize)]
struct Notice<T> {
    run_id: RunId,
    #[serde(rename = "type")]
    name: &'static str,
    data: T,
}

#[derive(Serialize)]
struct Dropped {
    /// Why, in words for the caller.
    reason: &'static str,
    /// The number of the last event that was sent. The reader can resume after it.
    after: u64,
}

/// Makes the frame of the last event for a dropped reader. It has no id, so that the reader resumes
/// after the last event of the run that it received.
fn dropped_frame(run_id: RunId, reason: &'static str, after: u64) -> Bytes {
    let notice = Notice {
        run_id,
        name: DROPPED,
        data: Dropped { reason, after },
    };
    let mut frame = format!("event: {DROPPED}\ndata: ").into_bytes();
    write_data(&mut frame, Some(run_id), |frame| serde_json::to_writer(frame, &notice));
    frame.into()
}
