//! Writes the events of a response as frames.

use crate::http::face_stream::{DONE, FrameWriter, write_frame};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::openai::response::{ResponseSettings, ResponseStream, WireEvent, stream_of_stored};
use crate::http::faces::turn::Turn;
use crate::run::read::RunMessages;
use agent::record::RunEvent;
use values::ids::RunId;

/// Writes the events of a response, as far as the client lacks them.
#[derive(Debug)]
pub(super) struct ResponseWriter {
    stream: ResponseStream,
    /// The number of the last event that the client has.
    after: Option<u64>,
}

impl ResponseWriter {
    /// Makes a writer of the events after the one with a number.
    pub(super) fn after(stream: ResponseStream, after: Option<u64>) -> Self {
        Self { stream, after }
    }
}

/// Returns the frames of a response whose events are no longer retained.
pub(super) fn stored_frames(messages: &RunMessages, settings: &ResponseSettings) -> Vec<u8> {
    let record = &messages.record;
    let echo = Echo::of_stored(record.echo.as_deref());
    let turn = Turn::of_stored(messages);
    let mut frames = Vec::new();
    for event in stream_of_stored(record, &turn, &echo, settings) {
        write_event(&mut frames, record.summary.run_id, &event);
    }
    frames.extend_from_slice(DONE);
    frames
}

fn write_event(frames: &mut Vec<u8>, run_id: RunId, event: &WireEvent) {
    write_frame(frames, run_id, Some(event.name()), event);
}

impl FrameWriter for ResponseWriter {
    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>) {
        for wire in self.stream.read(event) {
            if self.after.is_none_or(|after| wire.sequence_number() > after) {
                write_event(frames, event.run_id, &wire);
            }
        }
    }

    fn write_dropped(&mut self, run_id: RunId, message: &str, frames: &mut Vec<u8>) {
        for wire in self.stream.drop_reader(Failure::of_dropped(message), self.after) {
            write_event(frames, run_id, &wire);
        }
    }
}
