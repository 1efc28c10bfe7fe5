//! The context of an agent: messages, metadata, system prompt, response format, and overrides of
//! its definition.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use values::ids::StepId;
use values::json::Object;
use values::message::{Message, MessageTags};
use values::model_ref::{ResponseFormat, stored_format};
use values::session::{History, Overrides, RememberedApproval, RequestPrefix, ToolPins, WaitingStep, stored_overrides};

/// All messages of an agent, in one order; a section is a filter on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageStore {
    history: History,
}

impl MessageStore {
    /// Holds the history.
    pub fn new(history: History) -> Self {
        Self { history }
    }

    /// Returns all messages of all sections.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Iterates over the messages of the named section.
    pub fn section<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a Arc<Message>> {
        self.history
            .iter()
            .filter(move |message| message.tags.section.as_str() == name)
    }

    /// Returns the store with the messages of its newest step marked as traces, since another step
    /// follows.
    #[must_use]
    pub fn with_step_as_trace(self, step_id: StepId) -> Self {
        let newest = (0..self.history.len()).rev();
        let step_messages = newest
            .map_while(|at| self.history.get(at).map(|message| (at, message)))
            .skip_while(|(_, message)| message.tags.step_id != Some(step_id))
            .take_while(|(_, message)| message.tags.step_id == Some(step_id));
        let marked: Vec<_> = step_messages
            .map(|(at, message)| (at, Arc::new(as_trace(message))))
            .collect();
        let history = marked.into_iter().fold(self.history, |history, (at, message)| {
            history.with_message_at(at, message)
        });
        Self { history }
    }

    /// Returns the store with the messages with which requests begin.
    #[must_use]
    pub fn with_request_prefix(self, prefix: Arc<RequestPrefix>) -> Self {
        Self {
            history: self.history.with_request_prefix(prefix),
        }
    }

    /// Returns the store with more messages at its end.
    #[must_use]
    pub fn with_messages(self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        Self {
            history: self.history.with_messages(messages),
        }
    }
}

fn as_trace(message: &Message) -> Message {
    let tags = MessageTags {
        is_trace: true,
        ..message.tags.clone()
    };
    message.clone().with_tags(tags)
}

/// The context and the model parameters of an agent; they last across executions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentContext {
    /// All messages.
    pub store: MessageStore,
    /// Key-value pairs.
    pub metadata: Object,
    /// Instructions above the conversation: a template over variables and metadata.
    pub system_prompt: String,
    /// Text after the system prompt, for this execution only. It is no template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    /// The format of final completions.
    #[serde(deserialize_with = "stored_format")]
    pub response_format: ResponseFormat,
    /// The overrides of the agent's definition; `None` if there are none.
    #[serde(deserialize_with = "stored_overrides", skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Arc<Overrides>>,
    /// The step that waits for answers of the caller, once the execution has left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Arc<WaitingStep>>,
    /// The approvals that cover later calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered_approvals: Vec<RememberedApproval>,
    /// The definitions of tools of servers that the session has accepted.
    #[serde(skip_serializing_if = "ToolPins::is_empty")]
    pub tool_pins: ToolPins,
}

impl AgentContext {
    /// Returns the bytes of the text above the conversation, before the prompt is rendered.
    pub fn prompt_bytes(&self) -> u64 {
        let instructions = self.instructions.as_ref().map_or(0, |text| text.len());
        (self.system_prompt.len() + instructions) as u64
    }
}
