//! Writes a run as chunks: from its events while it works, or from what is stored of it.
//!
//! A page can't take a chunk back, except the parts of a step that begins again after a takeover.

use super::chunk::{Chunk, RunMetadata};
use super::parts_writer::PartsWriter;
use crate::http::faces::turn::{CallResult, Turn, TurnCall, TurnChange, TurnReader, TurnStep, read_step};
use crate::run::read::{AnsweredStep, RunMessages};
use agent::AgentEvent;
use agent::record::{RunEvent, RunRecord, RunStatus, RunSummary};
use agent::state::{FinishReason, StopReason, ToolVerdict};
use values::ids::RunId;
use values::json::{Object, Value};
use values::session::OpenCall;

/// The end of a message that somebody has called off. After it, a page sends nothing by itself.
const INTERRUPTED: &str = "interrupted";

/// What the page has of the calls that an earlier run has left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnsweredCalls {
    /// They are in an earlier message: the user has gone on without an answer.
    OfEarlierMessage,
    /// They are in the message that goes on, with the answers that the page has sent.
    Answered,
    /// They are in chunks before these ones, without answers.
    Replayed,
}

/// Writes the chunks of a message.
#[derive(Debug)]
pub(in crate::http) struct ChunkWriter {
    /// The first run of the turn, if an earlier run has begun it.
    turn: Option<RunId>,
    answered: AnsweredCalls,
    reader: TurnReader,
    parts: PartsWriter,
    /// Whether the message has begun.
    has_begun: bool,
}

impl ChunkWriter {
    /// Makes a writer for the page that has asked for a run. `turn` is the first run of the turn,
    /// if an earlier run has begun it.
    pub(in crate::http) fn new(turn: Option<RunId>) -> Self {
        let answered = turn.map_or(AnsweredCalls::OfEarlierMessage, |_| AnsweredCalls::Answered);
        Self {
            turn,
            answered,
            reader: TurnReader::default(),
            parts: PartsWriter::default(),
            has_begun: false,
        }
    }

    /// Makes a writer that also writes all results of calls that an earlier run has left open.
    pub(in crate::http) fn with_answers() -> Self {
        Self {
            answered: AnsweredCalls::Replayed,
            ..Self::new(None)
        }
    }

    /// Makes a writer for a page that has nothing of the turn, and writes its earlier runs.
    pub(in crate::http) fn after(earlier: &[RunMessages]) -> Self {
        let first = earlier.first().map(|run| run.record.summary.run_id);
        let mut writer = match first {
            Some(_) => Self::with_answers(),
            None => Self::new(None),
        };
        writer.turn = first;
        for run in earlier {
            writer.write_earlier(run);
        }
        writer
    }

    /// Returns the chunks that were written since the last call.
    pub(in crate::http) fn take(&mut self) -> Vec<Chunk> {
        self.parts.take()
    }

    /// Reads the next event of a run at work.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) {
        match self.reader.read(event) {
            Some(TurnChange::Started(run)) => self.begin(run),
            Some(TurnChange::Ended(record)) => {
                self.begin(&record.summary);
                self.end(record);
            }
            Some(change) => self.change(change),
            None => (),
        }
    }

    /// Reads the next event of a subagent at work.
    pub(in crate::http::faces) fn read_agent(&mut self, event: &AgentEvent) {
        if let Some(change) = self.reader.read_agent(event) {
            self.change(change);
        }
    }

    /// Ends the open step, if there is one.
    pub(in crate::http::faces) fn end_step(&mut self) {
        self.parts.end_step();
    }

    /// Writes a change within a run.
    fn change(&mut self, change: TurnChange<'_>) {
        let (parts, answered) = (&mut self.parts, self.answered);
        let step = self.reader.turn().steps.last();
        let call = |call_id: &str| step?.calls.iter().find(|call| call.call_id == call_id);
        match change {
            TurnChange::StepStarted { is_again } => match step {
                Some(step) if is_again => parts.begin_step_again(step.id),
                Some(step) if step.left_open_by.is_some() => parts.enter_step(step.id),
                Some(step) => parts.begin_step(step.id),
                None => (),
            },
            TurnChange::Words { block, text } => parts.add_words(step, block, text),
            TurnChange::CallStarted(name) => parts.begin_call(name),
            TurnChange::Arguments { call_id, text } => parts.add_arguments(call_id, text),
            TurnChange::CallRequested(name, _) if step.is_some_and(|step| step.left_open_by.is_some()) => {
                if answered != AnsweredCalls::OfEarlierMessage {
                    parts.go_on(name.call_id);
                }
            }
            TurnChange::CallRequested(name, arguments) => parts.request(name, arguments_of(arguments)),
            TurnChange::Output { call_id, text } => parts.add_output(call_id, text),
            TurnChange::CallEnded(call_id) => {
                if let Some((step, call)) = step.zip(call(call_id)) {
                    end_call(parts, step, call, answered);
                }
            }
            TurnChange::CallAnswered(name, result) => answer(parts, name.call_id, &result, answered),
            TurnChange::Subagent(call_id) => {
                if let Some(call) = call(call_id) {
                    parts.show_subagent(call);
                }
            }
            TurnChange::Variables(variables) => parts.push(Chunk::DataState {
                data: variables.clone(),
                transient: true,
            }),
            TurnChange::Resumed | TurnChange::Started(_) | TurnChange::Ended(_) => (),
        }
    }

    /// Writes an earlier run of the turn, which has left calls open. They are answered, so the page
    /// executes none of them again.
    fn write_earlier(&mut self, run: &RunMessages) {
        self.begin(&run.record.summary);
        if let Some(answered) = &run.answered {
            self.write_answers(answered);
        }
        self.write_run(run, true);
    }

    /// Writes the steps of a stored run, and its usage after the last one: a run whose open step
    /// another run has, has its usage there.
    pub(in crate::http::faces) fn write_steps(&mut self, run: &RunMessages) {
        self.write_run(run, false);
    }

    /// Writes the steps of a stored run. `is_past` is whether nobody executes its calls any more.
    fn write_run(&mut self, run: &RunMessages, is_past: bool) {
        for record in &run.steps {
            let (step, _) = read_step(record);
            self.write_step(&step, &run.record.open_calls, is_past);
        }
        self.parts.ask(&run.record.open_calls);
        self.parts.end_step();
        let run = &run.record;
        if run.summary.status != RunStatus::Answered || !run.open_calls.is_empty() {
            self.parts.push(usage_of(&run.summary));
        }
    }

    /// Writes a step that an earlier run has left open, if that run is no longer stored.
    pub(in crate::http::faces) fn write_answered_step(&mut self, answered: &AnsweredStep) {
        let (step, _) = read_step(&answered.step);
        self.write_step(&step, &[], false);
        self.parts.end_step();
    }

    /// Writes the results of calls that an earlier run has left open.
    pub(in crate::http::faces) fn write_answers(&mut self, answered: &AnsweredStep) {
        let (step, _) = read_step(&answered.step);
        self.parts.enter_step(step.id);
        let open = |call: &&TurnCall| answered.open_calls.contains(&call.call_id);
        for call in step.calls.iter().filter(open) {
            if let Some(result) = &call.result {
                self.parts.answer(&call.call_id, result);
            }
        }
    }

    /// Writes the steps of messages that no stored run has made.
    pub(in crate::http::faces) fn write_turn(&mut self, turn: &Turn) {
        for step in &turn.steps {
            self.write_step(step, &[], false);
        }
        self.parts.end_step();
    }

    fn write_step(&mut self, step: &TurnStep, open_calls: &[OpenCall], is_past: bool) {
        let parts = &mut self.parts;
        parts.begin_step(step.id);
        for (index, block) in step.blocks.iter().enumerate() {
            parts.add_words(Some(step), index, &block.text);
        }
        for call in &step.calls {
            let open = open_calls.iter().find(|open| open.call_id == call.call_id);
            let arguments = open.map_or_else(|| arguments_of(&call.arguments), |open| open.arguments.clone());
            if is_past {
                parts.show(call.name(), &arguments);
            } else {
                parts.request(call.name(), arguments);
            }
            parts.show_subagent(call);
        }
        for call in &step.calls {
            if let Some(result) = &call.result {
                parts.end_call(&call.call_id, result);
            }
        }
    }

    /// Writes the beginning, unless it is written.
    fn begin(&mut self, run: &RunSummary) {
        if !self.has_begun {
            self.has_begun = true;
            self.parts.push(Chunk::Start {
                message_id: self.turn.unwrap_or(run.run_id),
                message_metadata: metadata_of(run),
            });
        }
    }

    fn end(&mut self, record: &RunRecord) {
        let run = &record.summary;
        let parts = &mut self.parts;
        parts.ask(&record.open_calls);
        parts.end_step();
        parts.push(usage_of(run));
        if run.status == RunStatus::Failed {
            let error = run.error.as_ref().map_or("the run failed", |error| &error.message);
            let error_text = error.to_owned();
            return parts.push(Chunk::Error { error_text });
        }
        let finish_reason = finish_of(record);
        if finish_reason == INTERRUPTED {
            let reason = run.status.as_str();
            parts.push(Chunk::Abort { reason });
        }
        parts.push(Chunk::Finish {
            finish_reason,
            message_metadata: metadata_of(run),
        });
    }

    /// Writes the end for a reader that is dropped.
    pub(in crate::http) fn drop_reader(&mut self, message: &str) {
        self.parts.push(Chunk::Error {
            error_text: message.to_owned(),
        });
    }
}

/// Writes the end of a call: one of its step, or one that an earlier run has left open and this run
/// has executed.
fn end_call(parts: &mut PartsWriter, step: &TurnStep, call: &TurnCall, answered: AnsweredCalls) {
    let Some(result) = &call.result else { return };
    if step.is_answered {
        answer(parts, &call.call_id, result, answered);
    } else if parts.has_requested(&call.call_id) {
        parts.end_call(&call.call_id, result);
    } else {
        parts.refuse(call.name(), arguments_of(&call.arguments), result);
    }
}

/// Writes the result of a call that an earlier run has left open, as far as the page lacks it.
fn answer(parts: &mut PartsWriter, call_id: &str, result: &CallResult, answered: AnsweredCalls) {
    match answered {
        AnsweredCalls::OfEarlierMessage => (),
        AnsweredCalls::Answered if result.verdict == ToolVerdict::Supplied => (),
        AnsweredCalls::Answered | AnsweredCalls::Replayed => parts.answer(call_id, result),
    }
}

/// Returns the arguments of a call as JSON; the text itself if it is none.
fn arguments_of(text: &str) -> Value {
    if text.is_empty() {
        return Value::Object(Object::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Returns the metadata of a message: its last run.
pub(in crate::http::faces) fn metadata_of(run: &RunSummary) -> RunMetadata {
    RunMetadata {
        run_id: run.run_id,
        session_id: run.session_id,
    }
}

fn usage_of(run: &RunSummary) -> Chunk {
    Chunk::DataUsage {
        id: run.run_id,
        data: run.usage,
    }
}

fn finish_of(record: &RunRecord) -> &'static str {
    if !record.open_calls.is_empty() {
        return "tool-calls";
    }
    let run = &record.summary;
    match (run.status, run.stop_reason) {
        (RunStatus::Cancelled, _) | (RunStatus::Stopped, Some(StopReason::UserRequested)) => return INTERRUPTED,
        (RunStatus::Stopped, Some(StopReason::TokenLimitReached | StopReason::SpendLimitReached)) => return "length",
        (RunStatus::Stopped, _) => return "other",
        _ => (),
    }
    match &record.finish_reason {
        None | Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal) => "stop",
        Some(FinishReason::Length) => "length",
        Some(FinishReason::ContentFilter) => "content-filter",
        Some(FinishReason::PauseTurn | FinishReason::Interrupted | FinishReason::Other(_)) => "other",
    }
}
