//! Streams the events of a run.

use axum::body::Bytes;
use axum::response::Response;

use crate::http::face_stream::{self, FrameWriter, write_frame};
use crate::http::faces::ag_ui::{EndMetadata, EventWriter, Follower, Outcome, RunInput, Variables};
use crate::http::in_flight::held;
use crate::http::problem::Problem;
use agent::record::{RunError, RunEvent};
use tasks::fair_share::Share;
use values::ids::RunId;

/// The code of the error that ends a stream before its run.
const DROPPED: &str = "stream_dropped";

/// Returns the page that has sent a request, whose messages are not known.
pub(super) fn page_of(input: &RunInput) -> Follower {
    Follower {
        thread_id: input.thread.to_string(),
        run_id: input.run_id.clone(),
        tools: input.tool_names(),
        answered: input.answered(),
        messages: None,
    }
}

/// Responds with the error of a request that has a sound body. A page reads it as the end of the
/// run.
pub(super) fn refuse(input: &RunInput, problem: &Problem) -> Response {
    let mut writer = EventWriter::new(page_of(input), Variables::new());
    writer.begin(None);
    writer.fail(problem.detail(), problem.code().as_str());
    face_stream::respond_with(frames_of(&mut writer).into())
}

/// The end of the last run.
pub(super) type End = Result<(Outcome, Option<EndMetadata>), RunError>;

/// Responds with what a page lacks, which has taken its room, and the end of the last run.
pub(super) fn respond_with(mut writer: EventWriter, end: End, mut share: Share) -> Response {
    writer.begin(None);
    match end {
        Ok((outcome, metadata)) => writer.finish(outcome, metadata),
        Err(error) => writer.fail(&error.message, &error.code),
    }
    let frames = frames_of(&mut writer);
    share.set(frames.len());
    face_stream::respond_with(held(Bytes::from(frames), share))
}

fn frames_of(writer: &mut EventWriter) -> Vec<u8> {
    let mut frames = Vec::new();
    write(writer, None, &mut frames);
    frames
}

fn write(writer: &mut EventWriter, run_id: Option<RunId>, frames: &mut Vec<u8>) {
    for event in writer.take() {
        write_frame(frames, run_id, None, &event);
    }
}

impl FrameWriter for EventWriter {
    const LAST: &'static [u8] = b"";

    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>) {
        self.read(event);
        write(self, Some(event.run_id), frames);
    }

    fn write_dropped(&mut self, run_id: RunId, message: &str, frames: &mut Vec<u8>) {
        self.fail(message, DROPPED);
        write(self, Some(run_id), frames);
    }
}
