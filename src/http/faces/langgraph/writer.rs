//! Writes a run at work as the events of its stream.

use std::collections::BTreeMap;
use std::mem;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::fold::{Messages, message_id};
use super::interrupt::{Interrupt, OpenStep, object};
use super::message::{Message, ToolResult};
use crate::http::faces::chat::{Chunk, ChunkWriter};
use agent::AgentEvent;
use agent::record::{RunEvent, RunEventPayload, RunRecord, RunStatus};
use values::ids::StepId;
use values::json::Value;

/// The node of the model, and that of the tools.
const AGENT: &str = "agent";
const TOOLS: &str = "tools";

/// What a reader asks for.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a client may ask for any of them")]
pub(in crate::http) struct Modes {
    /// The whole state, whenever it has changed.
    pub(in crate::http) values: bool,
    /// Messages in pieces.
    pub(in crate::http) messages: bool,
    /// What each node has added.
    pub(in crate::http) updates: bool,
    /// Output of tools at work.
    pub(in crate::http) custom: bool,
}

/// The state of a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct Values {
    /// The messages.
    pub(in crate::http) messages: Vec<Message>,
    /// What waits for answers; absent if nothing does.
    #[serde(rename = "__interrupt__", skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) interrupts: Vec<Interrupt>,
}

impl Values {
    /// Returns whether something waits for answers.
    pub(in crate::http) fn has_interrupts(&self) -> bool {
        !self.interrupts.is_empty()
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Event {
    Values(Values),
    /// Any other, with its name.
    Other(&'static str, Value),
    /// One that the reader has not asked for. Events have the same numbers for all readers.
    Skipped,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Values(values) => values.serialize(serializer),
            Self::Other(_, data) => data.serialize(serializer),
            Self::Skipped => serializer.serialize_unit(),
        }
    }
}

impl Event {
    /// Returns the name; `None` for an event that is not sent.
    pub(in crate::http) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Values(_) => Some("values"),
            Self::Other(name, _) => Some(name),
            Self::Skipped => None,
        }
    }
}

/// Writes the events of a run.
#[derive(Debug)]
pub(in crate::http) struct StreamWriter {
    modes: Modes,
    /// All messages of the thread.
    messages: Messages,
    chunks: ChunkWriter,
    /// The run that has begun the step.
    owner: String,
    /// The last step that has begun.
    step: Option<StepId>,
    /// The number of messages before the open step.
    before_step: usize,
    /// The calls of the step whose arguments come in pieces, each with its number, and whether
    /// there were some.
    calls: BTreeMap<String, (usize, bool)>,
    /// The results since the last update.
    results: Vec<ToolResult>,
    /// Whether the messages have changed since the last `values`.
    has_changed: bool,
    events: Vec<Event>,
}

impl StreamWriter {
    /// Makes a writer for a run that continues a conversation, its input included.
    pub(in crate::http) fn new(modes: Modes, conversation: Vec<Message>) -> Self {
        Self {
            modes,
            before_step: conversation.len(),
            messages: Messages::new(conversation),
            chunks: ChunkWriter::with_answers(),
            owner: String::new(),
            step: None,
            calls: BTreeMap::new(),
            results: Vec::new(),
            has_changed: true,
            events: Vec::new(),
        }
    }

    /// Returns the events that were written since the last call.
    pub(in crate::http) fn take(&mut self) -> Vec<Event> {
        mem::take(&mut self.events)
    }

    /// Reads the next event of the run.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) {
        if let RunEventPayload::Agent(AgentEvent::StepStarted {
            step_id, left_open_by, ..
        }) = &event.payload
        {
            self.step = Some(*step_id);
            self.owner = left_open_by.unwrap_or(event.run_id).to_string();
        }
        self.chunks.read(event);
        for chunk in self.chunks.take() {
            self.add(&chunk);
        }
        if let Some(record) = event.payload.record() {
            self.end(record);
        }
    }

    fn add(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Start { message_metadata, .. } => {
                let run_id = message_metadata.run_id();
                self.push("metadata", json!({"run_id": run_id, "attempt": 1}));
                self.show();
            }
            Chunk::StartStep => {
                self.settle();
                self.before_step = self.messages.list.len();
                self.calls.clear();
            }
            Chunk::ResetStep => {
                // What the step has said is void: it begins again, with messages of other ids.
                self.messages.list.truncate(self.before_step);
                self.results.clear();
                self.calls.clear();
                self.has_changed = true;
                self.show();
            }
            Chunk::FinishStep => self.settle(),
            Chunk::ToolOutputAvailable {
                tool_call_id,
                output,
                preliminary: true,
            } => {
                let data = || json!({"type": "tool_output", "tool_call_id": tool_call_id, "output": output});
                self.push_if(self.modes.custom, "custom", data);
            }
            chunk => self.add_to_message(chunk),
        }
    }

    fn add_to_message(&mut self, chunk: &Chunk) {
        self.stream(chunk);
        let count = self.messages.list.len();
        let result = self.messages.add(&self.owner, chunk);
        self.has_changed |= count != self.messages.list.len() || is_of_message(chunk);
        if let Some(result) = result {
            let message = || json!([Message::Tool(result.clone()), {"langgraph_node": TOOLS}]);
            self.push_if(self.modes.messages, "messages", message);
            self.results.push(result);
        }
    }

    /// Streams a piece of a message of the agent. Pieces with one id add up.
    fn stream(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::TextDelta { id, delta } => self.push_piece(id, delta, &json!({}), &[]),
            Chunk::ReasoningDelta { id, delta } => {
                self.push_piece(id, "", &json!({"reasoning_content": delta}), &[]);
            }
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
            } => self.begin_call(tool_call_id, tool_name, ""),
            Chunk::ToolInputDelta {
                tool_call_id,
                input_text_delta,
            } => {
                if let Some((index, has_arguments)) = self.calls.get_mut(tool_call_id) {
                    *has_arguments = true;
                    let piece = json!({"index": index, "args": input_text_delta, "type": "tool_call_chunk"});
                    self.push_piece(tool_call_id, "", &json!({}), &[piece]);
                }
            }
            Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input,
            }
            | Chunk::ToolInputError {
                tool_call_id,
                tool_name,
                input,
                ..
            } => match self.calls.get(tool_call_id).copied() {
                None => self.begin_call(tool_call_id, tool_name, &object(input).to_string()),
                Some((index, false)) => {
                    let text = object(input).to_string();
                    let piece = json!({"index": index, "args": text, "type": "tool_call_chunk"});
                    self.push_piece(tool_call_id, "", &json!({}), &[piece]);
                }
                Some((_, true)) => (),
            },
            _ => (),
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, arguments: &str) {
        let index = self.calls.len();
        self.calls.insert(id.to_owned(), (index, !arguments.is_empty()));
        let piece = json!({
            "index": index, "id": id, "name": name, "args": arguments, "type": "tool_call_chunk",
        });
        self.push_piece(id, "", &json!({}), &[piece]);
    }

    /// Adds a piece of the message of a step; `id` is that of a text or a call.
    fn push_piece(&mut self, id: &str, content: &str, kwargs: &Value, calls: &[Value]) {
        let message_id = message_id(&self.owner, id);
        let message = || {
            let message = json!({
                "type": "AIMessageChunk",
                "id": message_id,
                "content": content,
                "additional_kwargs": kwargs,
                "tool_call_chunks": calls,
            });
            json!([message, {"langgraph_node": AGENT}])
        };
        self.push_if(self.modes.messages, "messages", message);
    }

    /// Shows what the agent and its tools have added.
    fn settle(&mut self) {
        let results = mem::take(&mut self.results);
        if self.has_changed {
            let added = self.messages.list.iter().skip(self.before_step);
            let said: Vec<_> = added
                .filter(|message| matches!(message, Message::Ai(_)))
                .cloned()
                .collect();
            if !said.is_empty() {
                self.push_if(self.modes.updates, "updates", || json!({AGENT: {"messages": said}}));
            }
            if !results.is_empty() {
                let results: Vec<_> = results.into_iter().map(Message::Tool).collect();
                self.push_if(self.modes.updates, "updates", || json!({TOOLS: {"messages": results}}));
            }
        }
        self.show();
    }

    /// Shows the state, if it has changed.
    fn show(&mut self) {
        if mem::take(&mut self.has_changed) {
            self.push_values(Vec::new());
        }
    }

    fn end(&mut self, record: &RunRecord) {
        self.settle();
        let run = &record.summary;
        if run.status == RunStatus::Failed {
            return self.push("error", error_of(record));
        }
        if let Some(id) = self.step.filter(|_| !record.open_calls.is_empty()) {
            let calls = record.open_calls.clone();
            // Clients read nothing else of an event with interrupts.
            self.push_values(OpenStep { id, calls }.interrupts());
        }
        self.push("end", Value::Null);
    }

    fn push_values(&mut self, interrupts: Vec<Interrupt>) {
        if !self.modes.values {
            return self.events.push(Event::Skipped);
        }
        let messages = self.messages.list.clone();
        self.events.push(Event::Values(Values { messages, interrupts }));
    }

    fn push_if(&mut self, is_asked: bool, name: &'static str, data: impl FnOnce() -> Value) {
        let event = if is_asked {
            Event::Other(name, data())
        } else {
            Event::Skipped
        };
        self.events.push(event);
    }

    fn push(&mut self, name: &'static str, data: Value) {
        self.events.push(Event::Other(name, data));
    }

    /// Returns the state at the end of the run, or its error.
    pub(in crate::http) fn into_end(self, record: &RunRecord) -> Result<Values, Value> {
        if record.summary.status == RunStatus::Failed {
            return Err(error_of(record));
        }
        let open = self.step.filter(|_| !record.open_calls.is_empty());
        let calls = || record.open_calls.clone();
        let interrupts = open.map(|id| OpenStep { id, calls: calls() }.interrupts());
        Ok(Values {
            messages: self.messages.list,
            interrupts: interrupts.unwrap_or_default(),
        })
    }
}

/// Returns the error of a run that has failed.
pub(in crate::http) fn error_of(record: &RunRecord) -> Value {
    let error = record.summary.error.as_ref();
    let (code, message) = error.map_or(("run_failed", "the run failed"), |error| (&error.code, &error.message));
    json!({"error": code, "message": message})
}

fn is_of_message(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::TextDelta { .. }
            | Chunk::ReasoningDelta { .. }
            | Chunk::ToolInputAvailable { .. }
            | Chunk::ToolInputError { .. }
    )
}
