//! A run as server-sent events. The stream begins at once, is never buffered and ends after the terminal event.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;

use super::view::{RunSummaryView, RunView};
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::{RunEvent, RunEventPayload};

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

/// Makes the response of a stream of events; dropping it drops the stream.
pub(super) fn respond(events: impl Stream<Item = Arc<RunEvent>> + Send + 'static, keep_alive: Duration) -> Response {
    let frames = events.map(|event| Ok::<_, Infallible>(frame(&event)));
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

fn frame(event: &RunEvent) -> Event {
    let frame = Event::default()
        .id(event.sequence.to_string())
        .event(event.payload.name());
    match event_json(event) {
        Ok(json) => frame.data(json),
        Err(error) => {
            tracing::error!(error = error.to_string(), run_id = %event.run_id, "event can't be encoded");
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
        RunEventPayload::SessionCommitted { .. } | RunEventPayload::Agent(_) => serde_json::to_string(event),
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
