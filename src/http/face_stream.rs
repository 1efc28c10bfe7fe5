//! Streams the events of a run in the form of another protocol.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use futures_util::stream;
use serde::Serialize;

use super::auth::Call;
use super::event_stream::{self, FrameReader, NextFrames, event_stream};
use super::frames::write_data;
use super::in_flight::{SMALL, held};
use crate::run::CallerGuard;
use crate::run::read::{Followed, Follower};
use agent::record::RunEvent;
use values::ids::RunId;
use values::limits::TenantShare;

/// The last frame of most protocols.
pub(super) const DONE: &[u8] = b"data: [DONE]\n\n";

/// The reason for dropping a reader for whom an event is missing.
const LOST_EVENTS: &str = "some events are no longer kept";

/// Writes the events of a run as frames of a protocol.
pub(super) trait FrameWriter: Send + 'static {
    /// The last frame of a stream.
    const LAST: &'static [u8] = DONE;

    /// Writes the frames of an event, of which there may be none.
    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>);

    /// Writes the frames for a reader that is dropped before the end of its run, in words for it.
    fn write_dropped(&mut self, run_id: RunId, message: &str, frames: &mut Vec<u8>);
}

/// Makes the response of a stream. `first` is its first event, if that was read already. Dropping
/// the response also drops the caller's guard.
pub(super) fn respond(
    call: Call,
    first: Option<Arc<RunEvent>>,
    events: Follower,
    caller: Option<CallerGuard>,
    counted: Option<TenantShare>,
    writer: impl FrameWriter,
) -> Response {
    let reader = Reader::new(call.clone(), first, events, caller, counted, writer);
    event_stream(call, reader)
}

/// Makes the response of frames that are known already.
pub(super) fn respond_with(frames: Bytes) -> Response {
    event_stream::respond(stream::once(async { frames }))
}

/// Writes a frame. `name` is the type of its event.
pub(super) fn write_frame<T: Serialize>(
    frames: &mut Vec<u8>,
    run_id: impl Into<Option<RunId>>,
    name: Option<&str>,
    data: &T,
) {
    if let Some(name) = name {
        frames.extend([b"event: ", name.as_bytes(), b"\n"].concat());
    }
    frames.extend_from_slice(b"data: ");
    write_data(frames, run_id.into(), |frame| serde_json::to_writer(frame, data));
}

/// The reader of a stream.
pub(super) struct Reader<W> {
    call: Call,
    events: Follower,
    /// The guard of the caller, if the stream is the response to the request for the run.
    caller: Option<CallerGuard>,
    writer: W,
    /// An event that was read and not written yet.
    first: Option<Arc<RunEvent>>,
    /// The number of the last event that was written.
    last: u64,
    /// Counts the reader, unless its request has started the run.
    _counted: Option<TenantShare>,
}

impl<W: FrameWriter> FrameReader for Reader<W> {
    async fn next(&mut self) -> Option<NextFrames> {
        let (mut frames, mut is_last) = (Vec::new(), false);
        while frames.is_empty() {
            if is_last {
                return None;
            }
            is_last = self.read(&mut frames).await;
        }
        let bytes = with_room(&self.call, frames).await;
        Some(NextFrames { bytes, is_last })
    }

    async fn dropped(&mut self, reason: &'static str) -> Bytes {
        if let Some(caller) = &self.caller {
            caller.note_sent(&Followed::Dropped { reason });
        }
        let mut frames = Vec::new();
        self.write_dropped(reason, &mut frames);
        with_room(&self.call, frames).await
    }
}

impl<W: FrameWriter> Reader<W> {
    /// Makes a reader. `first` is the first event, if that was read already.
    pub(super) fn new(
        call: Call,
        first: Option<Arc<RunEvent>>,
        events: Follower,
        caller: Option<CallerGuard>,
        counted: Option<TenantShare>,
        writer: W,
    ) -> Self {
        Self {
            call,
            events,
            caller,
            writer,
            first,
            last: 0,
            _counted: counted,
        }
    }

    /// Reads the next event, and writes its frames. Returns whether nothing follows.
    async fn read(&mut self, frames: &mut Vec<u8>) -> bool {
        let followed = match self.first.take() {
            Some(event) => Some(Followed::Event(event)),
            None => self.events.next().await,
        };
        let followed = match followed {
            Some(Followed::Event(event)) if !follows(&event, self.last) => {
                Some(Followed::Dropped { reason: LOST_EVENTS })
            }
            followed => followed,
        };
        if let (Some(caller), Some(followed)) = (&self.caller, &followed) {
            caller.note_sent(followed);
        }
        match followed {
            Some(Followed::Event(event)) => {
                self.last = event.sequence;
                self.writer.write(&event, frames);
                let is_last = event.payload.is_terminal();
                if is_last {
                    frames.extend_from_slice(W::LAST);
                }
                is_last
            }
            Some(Followed::Dropped { reason }) => {
                self.write_dropped(reason, frames);
                true
            }
            None => true,
        }
    }

    fn write_dropped(&mut self, reason: &str, frames: &mut Vec<u8>) {
        let message = format!("the stream ends before the response, which may still be completed: {reason}");
        self.writer.write_dropped(self.events.run_id(), &message, frames);
        frames.extend_from_slice(W::LAST);
    }
}

/// Returns whether no event is missing between the one with a number and the next one. The event of
/// a session that was removed, right before the end, has nothing that clients read.
pub(super) fn follows(event: &RunEvent, last: u64) -> bool {
    event.sequence <= last + 1 + u64::from(event.payload.is_terminal())
}

/// Waits for the room of large frames. The writer has taken their event already.
async fn with_room(call: &Call, frames: Vec<u8>) -> Bytes {
    if frames.len() <= SMALL {
        return frames.into();
    }
    let share = call.api.in_flight.take(&call.tenant, frames.len()).await;
    held(frames.into(), share)
}
