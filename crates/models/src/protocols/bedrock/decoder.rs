//! Reads the events of a stream, and whole responses.

use std::sync::Arc;

use super::completion::Completion;
use super::events::{AwsEvents, EXCEPTION};
use crate::body::{Body, protocol};
use crate::decoder::{FrameReader, Progress, StreamDecoder, read_object};
use crate::errors::{error_in, error_of_frame};
use crate::fields::Fields;
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;

/// Decodes one completion.
pub(super) type ConverseDecoder = StreamDecoder<ConverseReader>;

/// Reads one completion.
#[derive(Debug)]
pub(super) struct ConverseReader {
    completion: Completion,
}

impl ConverseDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    pub(super) fn of_aws(provider: &str, caps: CapSettings, ids: Arc<dyn IdSource>) -> Self {
        Self::of_body(provider, Body::detected_by(AwsEvents::detect, caps), caps, ids)
    }
}

impl FrameReader for ConverseReader {
    const HAS_MARKS: bool = false;

    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            completion: Completion::new(provider, ids, caps),
        }
    }

    fn error(name: &str, data: &str) -> Option<AttemptError> {
        (name == EXCEPTION).then(|| error_of_frame(data))
    }

    fn take_frame(&mut self, name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let completion = &mut self.completion;
        let event = Fields::parse(data)
            .ok_or_else(|| protocol("an event of the stream is not a JSON object".to_owned(), data))?;
        let index = event.count("contentBlockIndex");
        let mut outcome = Ok(());
        match name {
            "contentBlockStart" => {
                if let Some(start) = event.get("start") {
                    outcome = completion.begin(index, start, events);
                }
            }
            "contentBlockDelta" => {
                outcome = completion.add(index, &event.object("delta").unwrap_or_default(), events);
            }
            "contentBlockStop" => completion.end(index),
            "messageStop" => completion.take_end(&event),
            "metadata" => {
                completion.take_usage(&event);
                // The last event of a stream.
                if completion.is_finished() {
                    return Ok(Progress::Complete);
                }
            }
            // `messageStart`, and unknown events of later protocol versions.
            _ => {}
        }
        outcome.map_err(|fault| fault.error(data))?;
        Ok(Progress::Open)
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        let whole = read_object(body)?;
        let Some(message) = whole.object("output").and_then(|output| output.object("message")) else {
            let error = whole.has("__type").then(|| error_of_frame(body));
            let error = error.or_else(|| error_in(&whole, body, false));
            return Err(error.unwrap_or_else(|| protocol("the response has no message".to_owned(), body)));
        };
        let completion = &mut self.completion;
        let mut outcome = Ok(());
        for block in message.items("content") {
            outcome = outcome.and_then(|()| completion.take_block(block, events));
        }
        completion.take_end(&whole);
        completion.take_usage(&whole);
        if let Err(fault) = outcome {
            events.extend(completion.usage_event());
            return Err(fault.error(body));
        }
        Ok(Progress::Complete)
    }

    fn is_finished(&self) -> bool {
        self.completion.is_finished()
    }

    fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        let usage = self.completion.usage_event();
        let response = self.completion.finish(events);
        events.extend(usage);
        Ok(response)
    }
}
