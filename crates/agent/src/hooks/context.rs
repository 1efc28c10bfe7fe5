//! What a hook receives and returns: the point, the state and the subject of the point.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use crate::ports::{Continuation, ModelRequest};
use crate::state::{AgentState, ErrorList, ModelResponse, ToolExecution};
use values::message::{ContentPart, Message, ToolCall};
use workspace::environment::EnvironmentValues;

/// A point of the loop.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HookPoint {
    /// Once, before the first step.
    BeforeExecution,
    /// Before each step.
    BeforeStep,
    /// Before each request to a model, those to fallbacks included.
    BeforeModelRequest,
    /// After each completion of a model, also one that was cut.
    AfterModelRequest,
    /// Before each call of a tool, in the order of the calls.
    BeforeToolUse,
    /// After each call of a tool, in the order in which they end.
    AfterToolUse,
    /// After each step that had errors.
    OnError,
    /// After each step, before it is archived.
    AfterStep,
    /// Once, when the loop ends.
    OnStop,
    /// Once, after everything else.
    AfterExecution,
}

impl HookPoint {
    /// All points, in the order of the loop.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name that configuration and events use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The value that passes through the hooks of one point.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// The point.
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
    /// On errors: those of the step.
    Errors(ErrorList),
}

impl HookSubject {
    /// Replaces the output of a model or a tool with a notice, or blocks a call.
    pub fn withhold(&mut self, words: &str) {
        match self {
            Self::Response(response) => response.withhold(),
            Self::ToolUse(tool_use) => {
                let reason = words.to_owned();
                tool_use.decision = ToolDecision::Block { reason };
            }
            Self::ToolExecution(execution) => execution.withhold(words),
            Self::State | Self::Input(_) | Self::Request(_) | Self::Errors(_) => (),
        }
    }
}

/// A call before it reaches its tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The call. A hook may change its arguments; the history retains the original.
    pub call: ToolCall,
    /// The decision about the call.
    pub decision: ToolDecision,
    /// The approval of the caller, if the call needed one and has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// The call that this one continues, if the tool has asked for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<Continuation>>,
}

/// The approval of a call by the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approved {
    /// The caller approved the call as it is.
    AsAsked,
    /// The caller changed the arguments.
    Edited {
        /// The arguments of the caller.
        arguments: String,
    },
}

impl ToolUse {
    /// Makes the use of a call about which nobody has decided.
    pub fn undecided(call: ToolCall) -> Self {
        Self {
            call,
            decision: ToolDecision::Execute,
            approved: None,
            continuation: None,
        }
    }
}

/// The decision about a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    /// The tool executes it.
    #[default]
    Execute,
    /// It is not executed; the model reads why.
    Block {
        /// Why.
        reason: String,
    },
    /// It is not executed; the model reads this result.
    Supply {
        /// The result.
        content: Vec<ContentPart>,
        /// Whether the model reads the result as an error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
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
