//! A run as server-sent events. The stream begins at once, is never buffered and ends after the terminal event.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;

use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::{RunEvent, RunEventPayload, RunSummaryView, RunView};
use crate::run::Followed;

/// An event whose data have a form of their own on the wire.
#[derive(Serialize)]
struct Envelope<T> {
    sequence: u64,
    run_id: RunId,
    time: Timestamp,
    #[serde(rename = "type")]
    name: &'static str,
    data: T,
}

/// The last event of a reader that is dropped. It is about the reader, so it is no event of the run and has no number.
const DROPPED: &str = "stream.dropped";

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
    /// The number of the last event that was sent: the reader can go on after it.
    after: u64,
}

/// Makes the response of a stream of events; dropping it drops the stream.
///
/// `after` is the number of the event before the first one.
pub(super) fn respond(
    run_id: RunId,
    after: u64,
    events: impl Stream<Item = Followed> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let frames = events.scan(after, move |last, followed| {
        let frame = match followed {
            Followed::Event(event) => {
                *last = event.sequence;
                event_frame(&event)
            }
            Followed::Dropped { reason } => dropped_frame(run_id, Dropped { reason, after: *last }),
        };
        ready(Some(Ok::<_, Infallible>(frame)))
    });
    let comments = KeepAlive::new().interval(keep_alive).text("keep-alive");
    let mut response = Sse::new(frames).keep_alive(comments).into_response();
    let headers = response.headers_mut();
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn event_frame(event: &RunEvent) -> Event {
    let frame = Event::default()
        .id(event.sequence.to_string())
        .event(event.payload.name());
    with_data(frame, event.run_id, event_json(event))
}

/// It has no id, so that a reader who comes back names the last event of the run that it has.
fn dropped_frame(run_id: RunId, dropped: Dropped) -> Event {
    let notice = Notice {
        run_id,
        name: DROPPED,
        data: dropped,
    };
    with_data(Event::default().event(DROPPED), run_id, serde_json::to_string(&notice))
}

fn with_data(frame: Event, run_id: RunId, json: Result<String, serde_json::Error>) -> Event {
    match json {
        Ok(json) => frame.data(json),
        Err(error) => {
            tracing::error!(error = error.to_string(), %run_id, "event can't be encoded");
            frame.data("{}")
        }
    }
}

/// Encodes an event; runs inside it look as they do everywhere else.
fn event_json(event: &RunEvent) -> Result<String, serde_json::Error> {
    match &event.payload {
        RunEventPayload::Started(summary) => envelope(event, RunSummaryView::from((**summary).clone())),
        RunEventPayload::Completed(run)
        | RunEventPayload::Stopped(run)
        | RunEventPayload::Failed(run)
        | RunEventPayload::Cancelled(run) => envelope(event, RunView::from((**run).clone())),
        RunEventPayload::Resumed { .. } | RunEventPayload::SessionCommitted { .. } | RunEventPayload::Agent(_) => {
            serde_json::to_string(event)
        }
    }
}

fn envelope<T: Serialize>(event: &RunEvent, data: T) -> Result<String, serde_json::Error> {
    let RunEvent {
        sequence,
        run_id,
        time,
        payload,
    } = event;
    serde_json::to_string(&Envelope {
        sequence: *sequence,
        run_id: *run_id,
        time: *time,
        name: payload.name(),
        data,
    })
}
