//! What the decoders of all protocols share: splits the bytes of a response into frames for the
//! protocol to read. No IO.

use super::body::{Body, BodyEnd, truncated};
use super::client::Decoder;
use super::retry::AttemptError;
use super::sse::SseEvent;
use crate::agent::ports::ModelEvent;

/// A decoder by what its protocol makes of frames.
pub(super) trait FrameDecoder: Send {
    /// Returns what cuts the bytes.
    fn body(&mut self) -> &mut Body;

    /// Takes a frame of a stream. Frames after a complete response are ignored.
    fn take_frame(&mut self, frame: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError>;

    /// Takes the end of a stream, perhaps with a frame that no blank line ended.
    fn finish_events(&mut self, last: Option<SseEvent>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError>;

    /// Takes a response that came as one JSON body.
    fn finish_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError>;

    /// See [`Decoder::is_done`].
    fn is_done(&self) -> bool;

    /// See [`Decoder::is_finished`].
    fn is_finished(&self) -> bool;
}

impl<D: FrameDecoder> Decoder for D {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let mut frames = Vec::new();
        let outcome = self.body().push(bytes, &mut frames);
        for frame in &frames {
            self.take_frame(frame, events)?;
        }
        outcome
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        match self.body().end() {
            _ if FrameDecoder::is_done(self) => Ok(()),
            BodyEnd::Whole(body) => self.finish_whole(&body, events),
            BodyEnd::Events(last) => self.finish_events(last, events),
            BodyEnd::Empty => Err(truncated()),
        }
    }

    fn is_done(&self) -> bool {
        FrameDecoder::is_done(self)
    }

    fn is_finished(&self) -> bool {
        FrameDecoder::is_finished(self)
    }
}
