//! The events of one agent, from the chunks of its steps.
//!
//! A step is a message of the agent, with the id `{run}.{step}`. Further texts of the step, its
//! reasoning and the results of its calls are messages whose ids begin with that. So each message
//! names the run that has made it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::event::{Event, Tagged};
use super::message::Content;
use crate::http::faces::chat::{Chunk, SubagentData};
use agent::state::ExecutionStatus;
use values::ids::SessionId;
use values::json::Value;

/// Makes the events of one agent.
#[derive(Debug)]
pub(super) struct AgentEvents {
    /// The beginning of the ids of messages: the run, or the session of a subagent.
    owner: String,
    /// The session, if it is of a subagent.
    tag: Option<SessionId>,
    /// The number of steps that have begun.
    step_count: usize,
    /// Whether a step is open.
    has_step: bool,
    /// The number of the first text of the step.
    first_text: Option<String>,
    /// The end of the open text or reasoning.
    open_block: Vec<Event>,
    /// The calls that have begun.
    calls: BTreeMap<String, CallState>,
    /// The subagents that have begun.
    subagents: BTreeSet<SessionId>,
    /// Those at work.
    at_work: BTreeSet<SessionId>,
    events: Vec<Tagged>,
}

#[derive(Debug, Default)]
struct CallState {
    has_arguments: bool,
    is_whole: bool,
}

impl AgentEvents {
    /// Makes the events of the agent of a run, or of a subagent.
    pub(super) fn new(owner: String, tag: Option<SessionId>) -> Self {
        Self {
            owner,
            tag,
            step_count: 0,
            has_step: false,
            first_text: None,
            open_block: Vec::new(),
            calls: BTreeMap::new(),
            subagents: BTreeSet::new(),
            at_work: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Sets the run that has begun the step.
    pub(super) fn set_owner(&mut self, owner: String) {
        self.owner = owner;
    }

    /// Returns the events since the last call.
    pub(super) fn take(&mut self) -> Vec<Tagged> {
        std::mem::take(&mut self.events)
    }

    /// Adds the events of a chunk. Chunks of the stream itself say nothing of an agent.
    pub(super) fn add(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::StartStep => self.begin_step(),
            Chunk::ResetStep => self.reset_step(),
            Chunk::FinishStep => self.end_step(),
            Chunk::TextStart { id } => {
                let message_id = self.text_id(&id);
                self.begin_text(message_id);
            }
            Chunk::TextDelta { id, delta } => {
                let message_id = self.text_id(&id);
                self.push(Event::TextMessageContent { message_id, delta });
            }
            Chunk::ReasoningStart { id } => self.begin_reasoning(&self.reasoning_id(&id)),
            Chunk::ReasoningDelta { id, delta } => {
                let message_id = self.reasoning_id(&id);
                self.push(Event::ReasoningMessageContent { message_id, delta });
            }
            Chunk::TextEnd { .. } | Chunk::ReasoningEnd { .. } => self.end_block(),
            Chunk::DataSubagent { data, .. } => self.show_subagent(data),
            chunk => self.add_of_call(chunk),
        }
    }

    fn begin_step(&mut self) {
        self.end_step();
        self.step_count += 1;
        self.has_step = true;
        self.first_text = None;
        self.push(Event::StepStarted {
            step_name: self.step_name(),
        });
    }

    fn end_step(&mut self) {
        if std::mem::take(&mut self.has_step) {
            self.push(Event::StepFinished {
                step_name: self.step_name(),
            });
        }
    }

    fn begin_text(&mut self, message_id: String) {
        let role = "assistant";
        self.open_block = vec![Event::TextMessageEnd {
            message_id: message_id.clone(),
        }];
        self.push(Event::TextMessageStart { message_id, role });
    }

    fn begin_reasoning(&mut self, message_id: &str) {
        let (id, role) = (|| message_id.to_owned(), "reasoning");
        self.push(Event::ReasoningStart { message_id: id() });
        self.push(Event::ReasoningMessageStart { message_id: id(), role });
        self.open_block = vec![
            Event::ReasoningMessageEnd { message_id: id() },
            Event::ReasoningEnd { message_id: id() },
        ];
    }

    fn end_block(&mut self) {
        for event in std::mem::take(&mut self.open_block) {
            self.push(event);
        }
    }

    /// Ends what the open step has said, since it begins again.
    fn reset_step(&mut self) {
        self.end_block();
        let open: Vec<_> = self.calls.keys().cloned().collect();
        for id in &open {
            self.close_call(id);
        }
        self.end_subagents();
        self.first_text = None;
    }

    /// Ends everything that is open, so that the run can end.
    pub(super) fn finish(&mut self) {
        self.end_block();
        self.end_step();
        self.end_subagents();
    }

    fn end_subagents(&mut self) {
        for subagent_run_id in std::mem::take(&mut self.at_work) {
            self.push_plain(Event::SubagentFinished { subagent_run_id });
        }
    }

    fn add_of_call(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
            } => self.begin_call(&tool_call_id, &tool_name),
            Chunk::ToolInputDelta {
                tool_call_id,
                input_text_delta,
            } => self.add_arguments(tool_call_id, input_text_delta),
            Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input,
            } => self.complete_call(&tool_call_id, &tool_name, &input),
            Chunk::ToolInputError {
                tool_call_id,
                tool_name,
                input,
                error_text,
            } => {
                self.complete_call(&tool_call_id, &tool_name, &input);
                self.end_call(tool_call_id, Content::Text(error_text));
            }
            Chunk::ToolOutputAvailable {
                tool_call_id,
                output,
                preliminary: true,
            } => self.push(Event::Custom {
                name: "tool_call.output",
                value: json!({"toolCallId": tool_call_id, "output": output}),
            }),
            Chunk::ToolOutputAvailable {
                tool_call_id, output, ..
            } => self.end_call(tool_call_id, Content::of_output(output)),
            Chunk::ToolOutputError {
                tool_call_id,
                error_text,
            } => self.end_call(tool_call_id, Content::Text(error_text)),
            Chunk::ToolOutputDenied { tool_call_id, words } => self.end_call(tool_call_id, Content::Text(words)),
            _ => (),
        }
    }

    fn begin_call(&mut self, id: &str, name: &str) {
        if self.calls.contains_key(id) {
            return;
        }
        self.calls.insert(id.to_owned(), CallState::default());
        let step = id.split_once(':').map_or(id, |(step, _)| step);
        self.push(Event::ToolCallStart {
            tool_call_id: id.to_owned(),
            tool_call_name: name.to_owned(),
            parent_message_id: format!("{}.{step}", self.owner),
        });
    }

    fn add_arguments(&mut self, tool_call_id: String, delta: String) {
        if let Some(call) = self.calls.get_mut(&tool_call_id) {
            call.has_arguments = true;
            self.push(Event::ToolCallArgs { tool_call_id, delta });
        }
    }

    /// Writes what is missing of a call whose arguments are known.
    fn complete_call(&mut self, id: &str, name: &str, input: &Value) {
        self.begin_call(id, name);
        if self.calls.get(id).is_some_and(|call| !call.has_arguments) {
            self.add_arguments(id.to_owned(), input.to_string());
        }
        self.close_call(id);
    }

    fn close_call(&mut self, id: &str) {
        let open = self.calls.get_mut(id).filter(|call| !call.is_whole);
        if let Some(call) = open {
            call.is_whole = true;
            let tool_call_id = id.to_owned();
            self.push(Event::ToolCallEnd { tool_call_id });
        }
    }

    fn end_call(&mut self, tool_call_id: String, content: Content) {
        self.close_call(&tool_call_id);
        let message_id = format!("{}.{}", self.owner, tool_call_id.replacen(':', ".", 1));
        self.push(Event::ToolCallResult {
            message_id,
            tool_call_id,
            content,
            role: "tool",
        });
    }

    fn show_subagent(&mut self, data: SubagentData) {
        let subagent_run_id = data.session_id;
        if data.status == ExecutionStatus::InProgress {
            // A page knows each subagent once, also after a takeover.
            if self.subagents.insert(subagent_run_id) {
                self.at_work.insert(subagent_run_id);
                self.push_plain(Event::SubagentStarted {
                    subagent_run_id,
                    name: data.agent,
                    parent_tool_call_id: data.tool_call_id,
                    parent_subagent_run_id: self.tag,
                });
            }
        } else if self.at_work.remove(&subagent_run_id) {
            self.push_plain(match data.status {
                ExecutionStatus::Failed => Event::SubagentError {
                    subagent_run_id,
                    message: "the subagent has failed",
                },
                _ => Event::SubagentFinished { subagent_run_id },
            });
        }
    }

    /// Returns the id of a message with a text; `id` is that of the text in its chunks.
    fn text_id(&mut self, id: &str) -> String {
        let (step, index) = id.split_once(':').unwrap_or((id, ""));
        let first = self.first_text.get_or_insert_with(|| index.to_owned());
        if first == index {
            format!("{}.{step}", self.owner)
        } else {
            format!("{}.{step}.{index}", self.owner)
        }
    }

    fn reasoning_id(&self, id: &str) -> String {
        format!("{}.{}", self.owner, id.replacen(':', ".r", 1))
    }

    fn step_name(&self) -> String {
        format!("step-{}", self.step_count)
    }

    fn push(&mut self, event: Event) {
        self.events.push(Tagged {
            event,
            subagent_run_id: self.tag,
        });
    }

    /// Adds an event that names a subagent itself.
    fn push_plain(&mut self, event: Event) {
        self.events.push(Tagged {
            event,
            subagent_run_id: None,
        });
    }
}
