//! The stream of a response: the events of a run become those of its items.
//!
//! An item begins when its first words arrive, or as a whole, once the item before it has ended.
//! Reasoning that begins a step and may get marks ends with the step, so the items after it come as
//! a whole.
//! What is written can't be taken back: after a takeover, the item in progress ends as incomplete,
//! and only the last event has what is true.

use std::sync::Arc;

use super::events::WireEvent;
use super::object::ResponseObject;
use super::projection::{Projection, ResponseSettings};
use super::status::ResponseStatus;
use super::writer::EventWriter;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::turn::{Turn, TurnChange, TurnReader, TurnStep};
use agent::record::{RunEvent, RunRecord, RunSummary};

/// Turns the events of a run into the events of its response.
#[derive(Debug)]
pub(in crate::http) struct ResponseStream {
    settings: ResponseSettings,
    echo: Arc<Echo>,
    /// The run before its first event.
    run: RunSummary,
    reader: TurnReader,
    writer: EventWriter,
}

impl ResponseStream {
    /// Makes the stream of a run, for all of its events.
    pub(in crate::http) fn new(settings: ResponseSettings, echo: Arc<Echo>, run: RunSummary) -> Self {
        Self {
            settings,
            echo,
            run,
            reader: TurnReader::default(),
            writer: EventWriter::default(),
        }
    }

    /// Reads the next event. Returns its events, of which there may be none.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) -> Vec<WireEvent> {
        let change = self.reader.read(event);
        let turn = self.reader.turn();
        let mut response = Writing {
            projection: Projection {
                run_id: event.run_id,
                echo: &self.echo,
                settings: &self.settings,
            },
            writer: &mut self.writer,
        };
        match change {
            Some(TurnChange::Started(run)) => response.begin(run),
            Some(TurnChange::StepStarted { .. }) => response.end_step(turn.steps.iter().nth_back(1)),
            Some(TurnChange::Words { block, text }) => response.add_words(turn.steps.last(), block, text),
            Some(TurnChange::CallEnded(_)) => response.end_calls(turn.steps.last()),
            Some(TurnChange::Resumed) => response.writer.abandon(&[]),
            Some(TurnChange::Ended(record)) => response.end(turn, record),
            // Items of these protocols appear once they are whole.
            Some(
                TurnChange::CallStarted(_)
                | TurnChange::Arguments { .. }
                | TurnChange::CallRequested(..)
                | TurnChange::Output { .. }
                | TurnChange::CallAnswered(..)
                | TurnChange::Subagent(_)
                | TurnChange::Variables(_),
            )
            | None => (),
        }
        self.writer.take()
    }

    /// Ends the stream before its run, with a failed response: clients take a stream that just ends
    /// for complete. `after` is the number of the last event that the client has.
    pub(in crate::http) fn drop_reader(&mut self, failure: Failure<'_>, after: Option<u64>) -> Vec<WireEvent> {
        if let Some(after) = after {
            self.writer.skip(after);
        }
        let mut response = Writing {
            projection: Projection {
                run_id: self.run.run_id,
                echo: &self.echo,
                settings: &self.settings,
            },
            writer: &mut self.writer,
        };
        response.begin(&self.run);
        response.writer.abandon(&[]);
        let dropped = ResponseObject::dropped(&self.run, failure, &self.echo);
        response.writer.response("response.failed", dropped);
        self.writer.take()
    }
}

/// Makes the stream of a run from what is stored of it. Each part has one delta.
pub(in crate::http) fn stream_of_stored(
    record: &RunRecord,
    turn: &Turn,
    echo: &Arc<Echo>,
    settings: &ResponseSettings,
) -> Vec<WireEvent> {
    let mut writer = EventWriter::default();
    let mut response = Writing {
        projection: Projection {
            run_id: record.summary.run_id,
            echo,
            settings,
        },
        writer: &mut writer,
    };
    response.end(turn, record);
    writer.take()
}

/// A response that is being written.
struct Writing<'a> {
    projection: Projection<'a>,
    writer: &'a mut EventWriter,
}

impl Writing<'_> {
    /// Writes the beginning, unless it is written.
    fn begin(&mut self, run: &RunSummary) {
        if !self.writer.is_new() {
            return;
        }
        let echo = self.projection.echo;
        let response = |status| ResponseObject::begun(run, status, echo);
        self.writer
            .response("response.created", response(ResponseStatus::InProgress));
        if echo.background {
            self.writer
                .response("response.queued", response(ResponseStatus::Queued));
        }
        self.writer
            .response("response.in_progress", response(ResponseStatus::InProgress));
    }

    fn add_words(&mut self, step: Option<&TurnStep>, block: usize, text: &str) {
        let Some(step) = step else { return };
        let Some(id) = self.projection.block_id(step, block) else {
            return;
        };
        if !self.writer.has_begun(id) {
            for item in self.projection.words_before(step, block) {
                self.writer.finish(item);
            }
            if let Some(item) = self.projection.begun_block(step, block) {
                self.writer.begin(item);
            }
        }
        self.writer.add(id, text);
    }

    /// Writes the calls that have ended, in the order of the model, and the end of the words before
    /// them.
    fn end_calls(&mut self, step: Option<&TurnStep>) {
        // Marks may still come, and answered calls end in any order.
        let is_ready = |step: &&TurnStep| !self.projection.seals() && !step.is_answered;
        let Some(step) = step.filter(is_ready) else { return };
        for item in self.projection.words(step, None) {
            self.writer.finish(item);
        }
        let ended = step.calls.iter().take_while(|call| call.result.is_some());
        for item in ended.filter_map(|call| self.projection.ended_call(step, call)) {
            self.writer.finish(item);
        }
    }

    /// Writes the items of a step after which the run goes on.
    fn end_step(&mut self, step: Option<&TurnStep>) {
        let Some(step) = step else { return };
        for item in self.projection.words(step, None) {
            self.writer.finish(item);
        }
        for item in step
            .calls
            .iter()
            .filter_map(|call| self.projection.ended_call(step, call))
        {
            self.writer.finish(item);
        }
    }

    /// Writes all items that are not written, and the end.
    fn end(&mut self, turn: &Turn, record: &RunRecord) {
        self.begin(&record.summary);
        let output = self.projection.output(turn, record);
        self.writer.abandon(&output);
        for item in output.iter().cloned() {
            self.writer.finish(item);
        }
        let response = ResponseObject::of_record(record, output, self.projection.echo);
        let name = match response.status() {
            ResponseStatus::Completed => "response.completed",
            ResponseStatus::Failed => "response.failed",
            // No event stands for a cancellation. A run that has not ended has no such event.
            ResponseStatus::Incomplete
            | ResponseStatus::Cancelled
            | ResponseStatus::Queued
            | ResponseStatus::InProgress => "response.incomplete",
        };
        self.writer.response(name, response);
    }
}
