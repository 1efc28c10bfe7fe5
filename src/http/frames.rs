//! Events, encoded for sending. An event is encoded when its first reader sends it, and the current
//! readers of the run share the bytes.
//!
//! - The readers of a run share the newest frames of small events (`recent_frames.rs`). A run that
//!   has had only one reader retains no frames.
//! - The readers of a large event share its frame while one of them sends it. It counts once among
//!   the bytes in flight. For example, a thousand readers of a run of ten megabytes share one copy
//!   of its last event.

use std::io::Write as _;
use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::OnceCell;

use super::in_flight::{InFlight, SMALL, held};
use super::recent_frames::RecentFrames;
use agent::record::{RunEvent, RunEventPayload, RunSummaryView, RunView, event_weight};
use tasks::fair_share::Share;
use tasks::keyed::{Held, Keyed};
use tasks::off_thread::by_size;
use values::clock::Timestamp;
use values::ids::RunId;
use values::tenant::TenantId;

/// The memory to encode one byte of an event. The last event of a run contains its text twice, and
/// is copied before encoding.
const ENCODING: usize = 4;

/// The frames of all runs that have readers.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The frames of small events, by run. Each reader of a run holds them.
    recent: Keyed<RunId, Mutex<RecentFrames>>,
    /// The frames of large events. Each reader holds the frame that it sends.
    sent: Keyed<Key, Frame>,
}

/// The frames for a reader of a run.
#[derive(Debug)]
pub(super) struct RunFrames {
    recent: Arc<Held<RunId, Mutex<RecentFrames>>>,
    sent: Keyed<Key, Frame>,
}

/// There is no room to encode an event of this size.
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
    _event: Option<Arc<RunEvent>>,
    encoded: OnceCell<(Bytes, Share)>,
}

impl Frames {
    /// Returns the frames of a run, for a reader of it.
    pub(super) fn of(&self, run_id: RunId) -> RunFrames {
        RunFrames {
            recent: self.recent.hold(run_id, Mutex::default),
            sent: self.sent.clone(),
        }
    }
}

impl RunFrames {
    /// Encodes an event, or returns the bytes that another reader has made.
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
            return Ok(self.encode_small(event));
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
            Ok((text, share))
        };
        let (encoded, _) = frame.encoded.get_or_try_init(encoding).await?;
        let encoded = encoded.clone();
        Ok(held(encoded, frame))
    }

    fn encode_small(&self, event: &Arc<RunEvent>) -> Bytes {
        let is_only_reader = Arc::strong_count(&self.recent) == 1;
        if is_only_reader {
            return encode(event);
        }
        // Others who send the same event meanwhile wait for its frame.
        self.recent.lock().get(event, encode)
    }

    fn frame(&self, event: &Arc<RunEvent>) -> Arc<Held<Key, Frame>> {
        let key = if event.payload.is_terminal() {
            Key::End(event.run_id)
        } else {
            Key::At(Arc::as_ptr(event).addr())
        };
        self.sent.hold(key, || Frame {
            _event: matches!(key, Key::At(_)).then(|| Arc::clone(event)),
            encoded: OnceCell::new(),
        })
    }
}

/// Encodes an event as it is sent.
fn encode(event: &RunEvent) -> Bytes {
    let mut frame = Vec::with_capacity(event_weight(&event.payload));
    // A vector takes all that is written.
    let _ = write!(frame, "id: {}\nevent: {}\ndata: ", event.sequence, event.payload.name());
    write_data(&mut frame, Some(event.run_id), |frame| write_event(frame, event));
    frame.into_boxed_slice().into()
}

/// Ends a frame with data as JSON. JSON has no line breaks, so it is one line.
pub(super) fn write_data(
    frame: &mut Vec<u8>,
    run_id: Option<RunId>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) {
    let begun = frame.len();
    if let Err(error) = write(frame) {
        tracing::error!(
            error = error.to_string(),
            run_id = run_id.map(display),
            "event can't be encoded"
        );
        frame.truncate(begun);
        frame.extend_from_slice(b"{}");
    }
    frame.extend_from_slice(b"\n\n");
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

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use serde_json::json;

    use super::*;

    fn event(sequence: u64) -> Arc<RunEvent> {
        let run_id = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
        let event = json!({
            "sequence": sequence, "run_id": run_id, "time": "2026-01-01T00:00:00Z", "type": "message.delta",
            "data": {"step_number": 1, "text": "hi"},
        });
        Arc::new(serde_json::from_value(event).unwrap())
    }

    /// Returns where the frames of the event are that so many readers send. A frame that is sent to
    /// several readers has one address.
    async fn addresses(frames: &Frames, event: &Arc<RunEvent>, readers: usize) -> Vec<*const u8> {
        let in_flight = InFlight::new(0);
        let tenant = TenantId::anonymous();
        let readers: Vec<_> = (0..readers).map(|_| frames.of(event.run_id)).collect();
        let sent = join_all(readers.iter().map(async |reader| {
            let frame = reader.encode(&in_flight, &tenant, event, &mut None).await.unwrap();
            let text = format!(
                concat!(
                    "id: {}\nevent: message.delta\n",
                    r#"data: {{"sequence":{},"run_id":"{}","time":"2026-01-01T00:00:00Z","type":"message.delta","#,
                    r#""data":{{"step_number":1,"text":"hi"}}}}"#,
                    "\n\n",
                ),
                event.sequence, event.sequence, event.run_id
            );
            assert_eq!(frame, text);
            frame
        }));
        sent.await.iter().map(|frame| frame.as_ptr()).collect()
    }

    #[tokio::test]
    async fn the_readers_of_a_run_send_the_same_bytes() {
        let frames = Frames::default();
        for sequence in 1..=3 {
            let event = event(sequence);
            let sent = addresses(&frames, &event, 1_000).await;
            assert!(sent.iter().all(|address| *address == sent[0]));
        }
    }

    #[test]
    fn an_event_is_encoded_for_the_first_reader_alone() {
        let (frames, in_flight, tenant) = (Frames::default(), InFlight::new(0), TenantId::anonymous());
        let event = event(1);
        let readers = [(); 3].map(|()| frames.of(event.run_id));
        let allocations = readers.each_ref().map(|reader| {
            let taken = measure(|| {
                let encoded = reader.encode(&in_flight, &tenant, &event, &mut None).now_or_never();
                assert!(encoded.is_some_and(|frame| frame.is_ok()));
            });
            taken.count_total
        });
        assert!(allocations[0] > 0 && allocations[1..] == [0, 0], "{allocations:?}");
    }

    #[tokio::test]
    async fn a_single_reader_retains_nothing_and_the_last_one_leaves_nothing() {
        let frames = Frames::default();
        let event = event(1);
        let reader = frames.of(event.run_id);
        let retained = || Arc::strong_count(&event) - 1;
        let (in_flight, tenant) = (InFlight::new(0), TenantId::anonymous());
        reader.encode(&in_flight, &tenant, &event, &mut None).await.unwrap();
        assert_eq!(retained(), 0);
        addresses(&frames, &event, 1).await;
        assert_eq!(retained(), 1);
        drop(reader);
        assert_eq!((retained(), frames.recent.count()), (0, 0));
    }
}
