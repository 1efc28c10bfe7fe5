//! Events, encoded for sending. All current readers of a large event share its encoded bytes.
//!
//! Shared bytes count once among the bytes in flight. For example, a thousand readers of a run of
//! ten megabytes share one copy of its last event.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use axum::body::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::clock::Timestamp;
use crate::fair_share::Share;
use crate::http::in_flight::{InFlight, SMALL, held};
use crate::ids::RunId;
use crate::off_thread::by_size;
use crate::record::{RunEvent, RunEventPayload, RunSummaryView, RunView, event_weight};
use crate::tenant::TenantId;

/// The memory to encode one byte of an event. The last event of a run contains its text twice, and
/// is copied before encoding.
const ENCODING: usize = 4;

/// Large events that are being sent.
#[derive(Debug, Default)]
pub(in crate::http) struct Frames {
    sent: Arc<Sent>,
}

/// The error if there is no room to encode an event. It has the bytes that the event takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoRoom {
    pub(super) bytes: usize,
}

/// An event whose data have a special form on the wire.
#[derive(Serialize)]
struct Envelope<T> {
    sequence: u64,
    run_id: RunId,
    time: Timestamp,
    #[serde(rename = "type")]
    name: &'static str,
    data: T,
}

type Sent = Mutex<HashMap<Key, Weak<Frame>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// The last event of a run. Readers may make it from the run's record, so it can have several
    /// addresses.
    End(RunId),
    /// Another event, by its address. The frame holds the event, so the address stays valid.
    At(usize),
}

#[derive(Debug)]
struct Frame {
    key: Key,
    _event: Option<Arc<RunEvent>>,
    sent: Arc<Sent>,
    encoded: OnceCell<(Bytes, Share)>,
}

impl Frames {
    /// Encodes an event, or returns the bytes that another reader still uses.
    ///
    /// A large event uses the room that the reader waited for, or else takes free room. If there is
    /// none, the reader drops the event and waits for room.
    pub(super) async fn encode(
        &self,
        in_flight: &InFlight,
        tenant: &TenantId,
        event: &Arc<RunEvent>,
        room: &mut Option<Share>,
    ) -> Result<Bytes, NoRoom> {
        let weight = event_weight(&event.payload);
        if weight <= SMALL {
            return Ok(encode(event).into());
        }
        // From here on, the room is used or released.
        let room = room.take();
        let frame = self.frame(event);
        let bytes = weight.saturating_mul(ENCODING);
        let encoding = async || {
            let share = room.or_else(|| in_flight.try_take(tenant, bytes));
            let mut share = share.ok_or(NoRoom { bytes })?;
            let event = Arc::clone(event);
            let text = by_size(tenant, bytes as u64, move || encode(&event)).await;
            share.set(text.len() + weight);
            Ok((text.into(), share))
        };
        let (encoded, _) = frame.encoded.get_or_try_init(encoding).await?;
        let encoded = encoded.clone();
        Ok(held(encoded, frame))
    }

    fn frame(&self, event: &Arc<RunEvent>) -> Arc<Frame> {
        let mut sent = lock(&self.sent);
        let key = if event.payload.is_terminal() {
            Key::End(event.run_id)
        } else {
            Key::At(Arc::as_ptr(event).addr())
        };
        if let Some(frame) = sent.get(&key).and_then(Weak::upgrade) {
            return frame;
        }
        let frame = Arc::new(Frame {
            key,
            _event: matches!(key, Key::At(_)).then(|| Arc::clone(event)),
            sent: Arc::clone(&self.sent),
            encoded: OnceCell::new(),
        });
        sent.insert(key, Arc::downgrade(&frame));
        frame
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut sent = lock(&self.sent);
        // Another reader may have added a new frame since.
        if sent.get(&self.key).is_some_and(|frame| frame.strong_count() == 0) {
            sent.remove(&self.key);
        }
    }
}

/// Encodes an event as it is sent.
fn encode(event: &RunEvent) -> Vec<u8> {
    let head = format!("id: {}\nevent: {}\ndata: ", event.sequence, event.payload.name());
    with_data(head, event.run_id, |text| write_event(text, event))
}

/// Makes a frame with data as JSON. JSON has no line breaks, so it is one line.
pub(super) fn with_data(
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

/// Writes an event as JSON. A run inside it has the same form as in other responses.
fn write_event(text: &mut Vec<u8>, event: &RunEvent) -> Result<(), serde_json::Error> {
    match &event.payload {
        RunEventPayload::Started(summary) => envelope(text, event, RunSummaryView::from((**summary).clone())),
        RunEventPayload::Completed(run)
        | RunEventPayload::Stopped(run)
        | RunEventPayload::Waiting(run)
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

fn lock(sent: &Sent) -> MutexGuard<'_, HashMap<Key, Weak<Frame>>> {
    // Each change is a single call of the map, so the map stays valid after a panic.
    sent.lock()
}
