//! Streams the chunks of a message.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::http::auth::Call;
use crate::http::face_stream::{self, FrameWriter, write_frame};
use crate::http::faces::chat::ChunkWriter;
use crate::run::CallerGuard;
use crate::run::read::Follower;
use agent::record::RunEvent;
use values::ids::RunId;
use values::limits::TenantShare;

/// Names the protocol of the stream.
const PROTOCOL: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-vercel-ai-ui-message-stream"),
    HeaderValue::from_static("v1"),
);

/// Responds with the chunks of a run, after those that are written already.
pub(super) fn respond(
    call: Call,
    events: Follower,
    caller: Option<CallerGuard>,
    counted: Option<TenantShare>,
    writer: ChunkWriter,
) -> Response {
    let mut response = face_stream::respond(call, None, events, caller, counted, writer);
    let (name, value) = PROTOCOL;
    response.headers_mut().insert(name, value);
    response
}

impl FrameWriter for ChunkWriter {
    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>) {
        self.read(event);
        for chunk in self.take() {
            write_frame(frames, event.run_id, None, &chunk);
        }
    }

    fn write_dropped(&mut self, run_id: RunId, message: &str, frames: &mut Vec<u8>) {
        self.drop_reader(message);
        for chunk in self.take() {
            write_frame(frames, run_id, None, &chunk);
        }
    }
}
