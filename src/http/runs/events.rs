//! A run as server-sent events. The stream begins at once, is never buffered, and ends after the
//! terminal event.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use tokio::time::timeout;

use super::frames::NoRoom;
use crate::clock::Timestamp;
use crate::fair_share::Share;
use crate::http::Api;
use crate::ids::RunId;
use crate::limits::TenantShare;
use crate::record::{RunEvent, RunEventPayload, RunSummaryView, RunView};
use crate::run::{CallerGuard, Followed, Follower};
use crate::tenant::TenantId;

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

/// How long a reader that has waited for room may take to read the event again.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);

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

/// Makes the response of a stream of events; dropping it drops the caller.
pub(super) fn respond(
    api: &Arc<Api>,
    tenant: TenantId,
    events: Follower,
    caller: Option<CallerGuard>,
    counted: Option<TenantShare>,
) -> Response {
    let reader = Reader {
        api: Arc::clone(api),
        tenant,
        last: events.after(),
        events,
        caller,
        _counted: counted,
        room: None,
    };
    let frames = stream::unfold(reader, |mut reader| async { Some((reader.next().await?, reader)) });
    let frames = never_silent(frames, api.limits.keep_alive_interval);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// Puts a comment wherever there was nothing for a while, whatever is waited for: an event, or room for one.
fn never_silent(
    frames: impl Stream<Item = Bytes> + Send,
    interval: Duration,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::unfold(Box::pin(frames), move |mut frames| async move {
        let comment = Some(Bytes::from_static(b": keep-alive\n\n"));
        let frame = timeout(interval, frames.next()).await.unwrap_or(comment);
        Some((Ok(frame?), frames))
    })
}

/// Who reads a stream.
struct Reader {
    api: Arc<Api>,
    tenant: TenantId,
    /// The number of the last event that was sent.
    last: u64,
    events: Follower,
    /// Who asked for the run, if the stream is the response to that.
    caller: Option<CallerGuard>,
    /// Counts the reader, but for who asked for the run: runs are counted themselves.
    _counted: Option<TenantShare>,
    /// Room for a large event.
    room: Option<Share>,
}

impl Reader {
    /// Returns what is sent next.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let followed = self.read().await?;
            if let Some(caller) = &self.caller {
                caller.note_sent(&followed);
            }
            let event = match followed {
                Followed::Event(event) => event,
                Followed::Dropped { reason } => return Some(dropped_frame(self.events.run_id(), reason, self.last)),
            };
            let (frames, in_flight) = (&self.api.frames, &self.api.in_flight);
            match frames.encode(in_flight, &self.tenant, &event, &mut self.room).await {
                Ok(frame) => {
                    self.last = event.sequence;
                    return Some(frame);
                }
                Err(NoRoom { bytes }) => {
                    // It is read again: nobody holds it while there is no room for it.
                    self.events.take_back(&event);
                    drop(event);
                    self.room = Some(in_flight.take(&self.tenant, bytes).await);
                }
            }
        }
    }

    /// Reads the next event. Room that was waited for is given back if there is none: what it was for is not there any more.
    async fn read(&mut self) -> Option<Followed> {
        let mut next = pin!(self.events.next());
        if let Ok(followed) = timeout(ROOM_PATIENCE, &mut next).await {
            return followed;
        }
        self.room = None;
        next.await
    }
}

/// Encodes an event as it is sent.
pub(super) fn encode(event: &RunEvent) -> Vec<u8> {
    let head = format!("id: {}\nevent: {}\ndata: ", event.sequence, event.payload.name());
    with_data(head, event.run_id, |text| write_event(text, event))
}

/// It has no id, so that a reader who comes back names the last event of the run that it has.
fn dropped_frame(run_id: RunId, reason: &'static str, after: u64) -> Bytes {
    let notice = Notice {
        run_id,
        name: DROPPED,
        data: Dropped { reason, after },
    };
    let head = format!("event: {DROPPED}\ndata: ");
    with_data(head, run_id, |text| serde_json::to_writer(text, &notice)).into()
}

/// JSON has no line breaks, so it is one line of data.
fn with_data(
    head: String,
    run_id: RunId,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Vec<u8> {
    let mut text = head.into_bytes();
    let begun = text.len();
    if let Err(error) = write(&mut text) {
        tracing::error!(error = error.to_string(), %run_id, "event can't be encoded");
        text.truncate(begun);
        text.extend_from_slice(b"{}");
    }
    text.extend_from_slice(b"\n\n");
    text
}

/// Writes an event; runs inside it look as they do everywhere else.
fn write_event(text: &mut Vec<u8>, event: &RunEvent) -> Result<(), serde_json::Error> {
    match &event.payload {
        RunEventPayload::Started(summary) => envelope(text, event, RunSummaryView::from((**summary).clone())),
        RunEventPayload::Completed(run)
        | RunEventPayload::Stopped(run)
        | RunEventPayload::Failed(run)
        | RunEventPayload::Cancelled(run) => envelope(text, event, RunView::from((**run).clone())),
        RunEventPayload::Resumed { .. } | RunEventPayload::SessionCommitted { .. } | RunEventPayload::Agent(_) => {
            serde_json::to_writer(text, event)
        }
    }
}

fn envelope<T: Serialize>(text: &mut Vec<u8>, event: &RunEvent, data: T) -> Result<(), serde_json::Error> {
    let RunEvent {
        sequence,
        run_id,
        time,
        payload,
    } = event;
    let envelope = Envelope {
        sequence: *sequence,
        run_id: *run_id,
        time: *time,
        name: payload.name(),
        data,
    };
    serde_json::to_writer(text, &envelope)
}
