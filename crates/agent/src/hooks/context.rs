//! The value that a hook receives and returns: the point, the state and the subject of the point.

use crate::hook_point::HookPoint;
use crate::ports::{ModelRequest, ToolDecision, ToolUse};
use crate::state::{AgentState, ErrorList, ModelResponse, ToolExecution};
use values::message::Message;
use workspace::environment::EnvironmentValues;

/// The value that passes through the hooks of one point.
#[derive(Debug, Clone)]
pub struct HookContext {
    pub point: HookPoint,
    /// The agent's state.
    pub state: AgentState,
    /// The subject of the point.
    pub subject: HookSubject,
    /// The variables and resources of the environment. The stack sets them before each hook.
    pub environment: EnvironmentValues,
}

/// The subject of a point. Each point has one kind of subject.
#[derive(Debug, Clone, PartialEq)]
pub enum HookSubject {
    /// The state alone.
    State,
    /// Before an execution: the messages that it begins with.
    Input(Vec<Message>),
    /// Before a model request.
    Request(Box<ModelRequest>),
    /// After a model request.
    Response(Box<ModelResponse>),
    /// Before a tool is used.
    ToolUse(ToolUse),
    /// After a tool was used.
    ToolExecution(Box<ToolExecution>),
    /// On errors: the errors of the step.
    Errors(ErrorList),
}

impl HookSubject {
    /// Replaces the output of a model or a tool with a notice, or blocks a call.
    pub fn withhold(&mut self, words: &str) {
        match self {
            Self::Response(response) => response.withhold(),
            Self::ToolUse(tool_use) => tool_use.decision = ToolDecision::block(words),
            Self::ToolExecution(execution) => execution.withhold(words),
            Self::State | Self::Input(_) | Self::Request(_) | Self::Errors(_) => (),
        }
    }
}

impl HookContext {
    /// Makes the context of a point.
    pub fn new(point: HookPoint, state: AgentState, subject: HookSubject) -> Self {
        Self {
            point,
            state,
            subject,
            environment: EnvironmentValues::default(),
        }
    }
}
