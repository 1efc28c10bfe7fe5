//! Writes a run at work as events.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::agent_events::AgentEvents;
use super::event::{Event, ShownMessage, Tagged};
use super::fold::fold;
use super::message::Message;
use super::outcome::{EndMetadata, Outcome, TokenUsage};
use crate::http::faces::chat::{Chunk, ChunkWriter, RunMetadata};
use agent::AgentEvent;
use agent::record::{RunEvent, RunEventPayload, RunRecord, RunStatus};
use values::ids::{AgentId, StepId};
use values::json::Value;
use values::model_ref::ModelRef;
use values::usage::Usage;

/// The version of the protocol.
const PROTOCOL: &str = "1.0";

/// A page that follows a run.
#[derive(Debug, Default)]
pub(in crate::http) struct Follower {
    /// What the page calls its thread.
    pub(in crate::http) thread_id: String,
    /// What the page calls the run.
    pub(in crate::http) run_id: String,
    /// The names of its tools.
    pub(in crate::http) tools: BTreeSet<String>,
    /// The calls whose results it has.
    pub(in crate::http) answered: BTreeSet<String>,
    /// The messages that it has, as a JSON array, if they are known.
    pub(in crate::http) messages: Option<String>,
}

/// Writes the events of a run for a page.
#[derive(Debug)]
pub(in crate::http) struct EventWriter {
    page: Follower,
    /// The messages that the page lacks.
    shown: Vec<Message>,
    variables: BTreeMap<String, Value>,
    chunks: ChunkWriter,
    agent: AgentEvents,
    subagents: BTreeMap<AgentId, Subagent>,
    /// The last step that has begun.
    step: Option<StepId>,
    usage: BTreeMap<ModelRef, Usage>,
    /// The messages that the run has made, and their number before the open step.
    made: Vec<Message>,
    made_before_step: usize,
    events: Vec<Tagged>,
}

/// An agent that works for another one.
#[derive(Debug)]
struct Subagent {
    chunks: ChunkWriter,
    events: AgentEvents,
}

impl EventWriter {
    /// Makes a writer for a page. `variables` are those with which the run begins.
    pub(in crate::http) fn new(page: Follower, variables: BTreeMap<String, Value>) -> Self {
        Self {
            page,
            shown: Vec::new(),
            variables,
            chunks: ChunkWriter::with_answers(),
            agent: AgentEvents::new(String::new(), None),
            subagents: BTreeMap::new(),
            step: None,
            usage: BTreeMap::new(),
            made: Vec::new(),
            made_before_step: 0,
            events: Vec::new(),
        }
    }

    /// Returns the events that were written since the last call.
    pub(in crate::http) fn take(&mut self) -> Vec<Tagged> {
        mem::take(&mut self.events)
    }

    /// Gives a page that has nothing the messages before the run.
    pub(in crate::http) fn showing(mut self, messages: Vec<Message>) -> Self {
        self.shown = messages;
        self
    }

    /// Writes the beginning: the run, and what the page lacks. `run` is the run here, if there is
    /// one.
    pub(in crate::http) fn begin(&mut self, run: Option<RunMetadata>) {
        self.push(Event::RunStarted {
            thread_id: self.page.thread_id.clone(),
            run_id: self.page.run_id.clone(),
            protocol_version: PROTOCOL,
            metadata: run,
        });
        // An empty snapshot would wipe the page.
        if !self.shown.is_empty() {
            let messages = mem::take(&mut self.shown);
            let messages = messages.into_iter().map(ShownMessage::Own).collect();
            self.push(Event::MessagesSnapshot { messages });
        }
        if !self.variables.is_empty() {
            self.push_variables();
        }
    }

    /// Writes the end of a run that is no longer at work, or of none.
    pub(in crate::http) fn finish(&mut self, outcome: Outcome, metadata: Option<EndMetadata>) {
        let event = Event::RunFinished {
            thread_id: self.page.thread_id.clone(),
            run_id: self.page.run_id.clone(),
            outcome,
            usage: self.usage(),
            metadata,
        };
        self.push(event);
    }

    /// Writes the end of a run that has failed, or of a request that is refused.
    pub(in crate::http) fn fail(&mut self, message: &str, code: &str) {
        let event = Event::RunError {
            message: message.to_owned(),
            code: code.to_owned(),
            usage: self.usage(),
        };
        self.push(event);
    }

    /// Reads the next event of the run.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) {
        match &event.payload {
            RunEventPayload::Agent(AgentEvent::StepStarted {
                step_id, left_open_by, ..
            }) => {
                self.step = Some(*step_id);
                self.agent.set_owner(left_open_by.unwrap_or(event.run_id).to_string());
            }
            RunEventPayload::Agent(AgentEvent::SubagentEvent { agent_id, event, .. }) => {
                return self.read_of_subagent(*agent_id, event);
            }
            RunEventPayload::Agent(event) => self.note(event),
            _ => (),
        }
        self.chunks.read(event);
        for chunk in self.chunks.take() {
            self.add(chunk);
        }
        if let Some(record) = event.payload.record() {
            self.end(record);
        }
    }

    /// Notes the usage, and the subagents, of an agent.
    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ModelResponded { model, usage, .. } => {
                let known = self.usage.entry(model.clone()).or_insert(Usage::NOTHING);
                *known = *known + **usage;
            }
            AgentEvent::SubagentStarted {
                agent_id, session_id, ..
            } => {
                let subagent = Subagent {
                    chunks: ChunkWriter::with_answers(),
                    events: AgentEvents::new(session_id.to_string(), Some(*session_id)),
                };
                self.subagents.insert(*agent_id, subagent);
            }
            AgentEvent::SubagentCompleted { agent_id, .. } => {
                if let Some(subagent) = self.subagents.remove(agent_id) {
                    self.extend(subagent.finish());
                }
            }
            _ => (),
        }
    }

    fn read_of_subagent(&mut self, agent_id: AgentId, event: &AgentEvent) {
        self.note(event);
        let Some(subagent) = self.subagents.get_mut(&agent_id) else {
            return;
        };
        subagent.chunks.read_agent(event);
        for chunk in subagent.chunks.take() {
            subagent.events.add(chunk);
        }
        let events = subagent.events.take();
        self.extend(events);
    }

    fn add(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Start { message_metadata, .. } => self.begin(Some(message_metadata)),
            Chunk::StartStep => {
                self.made_before_step = self.made.len();
                self.add_of_agent(Chunk::StartStep);
            }
            Chunk::ResetStep => self.reset_step(),
            Chunk::DataState { data, .. } => {
                for (name, value) in data {
                    match value {
                        Value::Null => self.variables.remove(&name),
                        value => self.variables.insert(name, value),
                    };
                }
                self.push_variables();
            }
            // The page has sent the result itself.
            Chunk::ToolOutputAvailable { tool_call_id, .. } | Chunk::ToolOutputError { tool_call_id, .. }
                if self.page.answered.contains(&tool_call_id) => {}
            chunk => self.add_of_agent(chunk),
        }
    }

    fn add_of_agent(&mut self, chunk: Chunk) {
        self.agent.add(chunk);
        let events = self.agent.take();
        self.extend(events);
    }

    /// Takes back what the open step has said: it begins again. The page drops all messages that a
    /// snapshot lacks, so the snapshot has those of the page, too. A page that has not sent them
    /// retains the lost words.
    fn reset_step(&mut self) {
        self.finish_subagents();
        self.add_of_agent(Chunk::ResetStep);
        let lost = self.made.split_off(self.made_before_step.min(self.made.len()));
        let Some(of_page) = &self.page.messages else { return };
        let of_page: Vec<Value> = serde_json::from_str(of_page).unwrap_or_default();
        let has_reasoning =
            of_page.iter().any(|message| message["role"] == "reasoning") || self.made.iter().any(Message::is_reasoning);
        // A page takes reasoning back only if a snapshot has some.
        let emptied = lost
            .into_iter()
            .filter(|message| !has_reasoning && message.is_reasoning());
        let own = self.made.iter().cloned().chain(emptied.map(Message::emptied));
        let own = own.map(ShownMessage::Own);
        let messages: Vec<_> = of_page.into_iter().map(ShownMessage::OfPage).chain(own).collect();
        // An empty snapshot would wipe a page whose messages are not known.
        if !messages.is_empty() {
            self.push(Event::MessagesSnapshot { messages });
        }
    }

    fn end(&mut self, record: &RunRecord) {
        self.finish_subagents();
        self.agent.finish();
        let events = self.agent.take();
        self.extend(events);
        let run = &record.summary;
        if run.status == RunStatus::Failed {
            let error = run.error.as_ref();
            let (message, code) = error.map_or(("the run failed", "run_failed"), |error| (&error.message, &error.code));
            return self.fail(message, code);
        }
        let (outcome, metadata) = match self.step {
            Some(step) if !record.open_calls.is_empty() => {
                (Outcome::of_open_calls(step, &record.open_calls, &self.page.tools), None)
            }
            _ => Outcome::of_end(run),
        };
        self.finish(outcome, metadata);
    }

    fn finish_subagents(&mut self) {
        for subagent in mem::take(&mut self.subagents).into_values() {
            self.extend(subagent.finish());
        }
    }

    fn usage(&self) -> Vec<TokenUsage> {
        let usage = self.usage.iter();
        usage.map(|(model, usage)| TokenUsage::new(model, usage)).collect()
    }

    fn push_variables(&mut self) {
        let snapshot = self.variables.clone();
        self.push(Event::StateSnapshot { snapshot });
    }

    fn push(&mut self, event: Event) {
        self.extend(vec![Tagged {
            event,
            subagent_run_id: None,
        }]);
    }

    fn extend(&mut self, events: Vec<Tagged>) {
        for event in &events {
            fold(&mut self.made, event);
        }
        self.events.extend(events);
    }
}

impl Subagent {
    /// Ends everything that is open. Returns the last events.
    fn finish(mut self) -> Vec<Tagged> {
        self.chunks.end_step();
        for chunk in self.chunks.take() {
            self.events.add(chunk);
        }
        self.events.finish();
        self.events.take()
    }
}
