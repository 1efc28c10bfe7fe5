//! Decodes a response of any protocol: bytes in, events out. No IO, and no panic for any bytes.

use std::sync::Arc;

use super::body::{Body, BodyEnd, protocol, truncated};
use super::ending::settled;
use super::errors::error_of_frame;
use super::fields::{self, Fields};
use super::protocol::Decoder;
use super::retry::AttemptError;
use super::settings::CapSettings;
use super::sse::Frame;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;

/// The mark that ends the streams of some protocols; gateways add it to others.
pub(super) const DONE: &str = "[DONE]";

/// The progress after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More frames may arrive.
    Open,
    /// The completion is complete.
    Complete,
    /// No more frames arrive. The completion is complete if its finish reason arrived.
    Ended,
}

/// Builds a completion from the frames of a protocol.
pub(super) trait FrameReader: Send {
    /// The error message for a stream without any part of a completion.
    const NOTHING: &'static str = "the stream has no completion";
    /// Whether streams may have events without data, and the mark at their end.
    const HAS_MARKS: bool = true;

    /// Makes an empty completion of the provider. Calls without an id get one from `ids`.
    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self;

    /// Reads the data of an event named `error`; `None` for any other event.
    fn error(name: &str, data: &str) -> Option<AttemptError> {
        is_error(name, data).then(|| error_of_frame(data))
    }

    /// Takes a frame of a stream: an event's name, which may be empty, and its data.
    fn take_frame(&mut self, name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError>;

    /// Handles the mark at the end of a stream.
    fn take_done(&mut self, _events: &mut Vec<ModelEvent>) -> Progress {
        Progress::Open
    }

    /// Reads a response that arrived as one JSON body.
    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError>;

    /// Returns whether no part of a completion has arrived. Then the end of the stream is a fault
    /// of the provider. False by default: the stream of such a protocol was cut off.
    fn has_nothing(&self) -> bool {
        false
    }

    /// Returns whether the provider has sent the finish reason.
    fn is_finished(&self) -> bool;

    /// Returns whether a part began, and nothing shows that it is whole. False by default: parts of
    /// such a protocol arrive whole.
    fn has_open_parts(&self) -> bool {
        false
    }

    /// Returns the whole completion, after its last events. Whether its finish reason and its
    /// content agree is checked afterwards.
    fn finish(self, events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError>;
}

/// Decodes one completion.
#[derive(Debug)]
pub(super) struct StreamDecoder<C> {
    body: Body,
    reading: Reading<C>,
}

/// The reading of the frames of one completion.
#[derive(Debug)]
struct Reading<C> {
    saw_frame: bool,
    /// The reader; `None` once the completion is complete.
    reader: Option<C>,
}

impl<C: FrameReader> StreamDecoder<C> {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    ///
    /// `content_type` is a hint only. The first bytes of the body decide.
    pub(super) fn new(provider: &str, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self::of_body(provider, Body::new(content_type, caps), caps, ids)
    }

    /// Makes a decoder that reads frames from this body.
    pub(super) fn of_body(provider: &str, body: Body, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self {
            body,
            reading: Reading {
                saw_frame: false,
                reader: Some(C::new(provider, ids, caps)),
            },
        }
    }

    /// Returns the reader of the completion; `None` once it is complete.
    pub(super) fn reader(&mut self) -> Option<&mut C> {
        self.reading.reader.as_mut()
    }
}

impl<C: FrameReader> Decoder for StreamDecoder<C> {
    fn push(&mut self, mut bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if self.is_done() {
            return Ok(());
        }
        self.body.receive(bytes.len())?;
        // Frames and errors after a complete response are ignored.
        while !self.reading.is_done()
            && let Some(frame) = self.body.next(&mut bytes)?
        {
            self.reading.take_frame(&frame, events)?;
        }
        Ok(())
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        if self.is_done() {
            return Ok(());
        }
        match self.body.end() {
            BodyEnd::Whole(body) => {
                let taken = self.reading.take_whole(&body, events);
                if taken.is_err() {
                    // Without output, the attempt can be retried.
                    events.retain(|event| matches!(event, ModelEvent::Usage(_)));
                }
                taken
            }
            BodyEnd::Events(last) => self.reading.finish(last, events),
            BodyEnd::Empty => Err(truncated()),
        }
    }

    fn is_done(&self) -> bool {
        self.reading.is_done()
    }

    fn is_finished(&self) -> bool {
        self.reading.reader.as_ref().is_none_or(FrameReader::is_finished)
    }
}

impl<C: FrameReader> Reading<C> {
    fn is_done(&self) -> bool {
        self.reader.is_none()
    }

    /// Reads a frame. Ignores frames after a complete response.
    fn take_frame(&mut self, frame: &Frame<'_>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let data = frame.data.trim();
        if let Some(error) = C::error(&frame.name, data) {
            return Err(error);
        }
        let progress = match data {
            "" if C::HAS_MARKS => Progress::Open,
            DONE if C::HAS_MARKS => reader.take_done(events),
            data => {
                self.saw_frame = true;
                reader.take_frame(&frame.name, data, events)?
            }
        };
        self.proceed(progress, events)
    }

    /// Reads a response that is one JSON body, which may have a byte order mark and blanks around
    /// it.
    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        self.saw_frame = true;
        let body = body.trim_start_matches('\u{FEFF}').trim();
        let progress = reader.take_whole(body, events)?;
        self.proceed(progress, events)
    }

    fn finish(&mut self, last: Option<Frame<'_>>, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        // Some servers omit the last blank line. A frame that was cut off is not valid JSON.
        let is_whole = |frame: &Frame<'_>| {
            let data = frame.data.trim();
            data == DONE || Fields::parse(data).is_some()
        };
        if let Some(frame) = last.filter(is_whole) {
            self.take_frame(&frame, events)?;
        }
        self.proceed(Progress::Ended, events)
    }

    fn proceed(&mut self, progress: Progress, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let Some(reader) = &self.reader else {
            return Ok(());
        };
        match progress {
            Progress::Open => return Ok(()),
            Progress::Ended if self.saw_frame && reader.has_nothing() && !reader.is_finished() => {
                return Err(protocol(C::NOTHING.to_owned(), ""));
            }
            Progress::Ended if !reader.is_finished() => return Err(truncated()),
            Progress::Ended | Progress::Complete if reader.has_open_parts() => return Err(truncated()),
            Progress::Ended | Progress::Complete => {}
        }
        if let Some(reader) = self.reader.take() {
            let response = settled(reader.finish(events)?)?;
            events.push(ModelEvent::Completed(Box::new(response)));
        }
        Ok(())
    }
}

/// Returns whether an event is an error by its name, and has data.
pub(super) fn is_error(name: &str, data: &str) -> bool {
    name == "error" && !data.is_empty() && data != DONE
}

/// Reads an object of a response. If the text is a list of errors instead, returns its error.
pub(super) fn read_object(text: &str) -> Result<Fields<'_>, AttemptError> {
    serde_json::from_str(text).map_err(|error| {
        if is_error_list(text) {
            return error_of_frame(text);
        }
        not_json(&error, "the response is not a JSON object", text)
    })
}

fn is_error_list(text: &str) -> bool {
    let first = fields::parse_list(text).and_then(|items| items.into_iter().next());
    first.and_then(fields::object).is_some_and(|first| first.has_error())
}

/// Returns the error for a text that is not valid JSON or was cut off.
pub(super) fn not_json(error: &serde_json::Error, message: &str, text: &str) -> AttemptError {
    if error.is_eof() {
        truncated()
    } else {
        protocol(message.to_owned(), text)
    }
}
