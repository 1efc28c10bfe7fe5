//! The table of the changes that hooks may make at each point. Only the loop may change everything
//! else.

use std::sync::Arc;

use strum::VariantArray as _;

use super::context::{HookContext, HookSubject};
use crate::events::StatePart;
use crate::hook_point::HookPoint;
use crate::ports::ToolUse;
use crate::state::{AgentState, ExecutionState, ModelResponse, ToolExecution};
use workspace::environment::EnvironmentValues;

/// A part of the context that a hook may or may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::VariantArray)]
pub enum HookField {
    /// The key-value pairs of the agent's context.
    #[strum(to_string = "the metadata")]
    Metadata,
    /// The variables of the environment.
    #[strum(to_string = "the variables")]
    Variables,
    /// The resources of the environment.
    #[strum(to_string = "the resources")]
    Resources,
    /// The instructions above the conversation.
    #[strum(to_string = "the system prompt")]
    SystemPrompt,
    /// The format of final completions.
    #[strum(to_string = "the response format")]
    ResponseFormat,
    /// Messages added at the end of the history.
    #[strum(to_string = "the messages")]
    Messages,
    /// Stop signals and the request to go on.
    #[strum(to_string = "what follows the step")]
    Continuation,
    /// The usage of the hook's model calls.
    #[strum(to_string = "the usage of hooks")]
    Usage,
    /// The messages that the execution begins with.
    #[strum(to_string = "the input")]
    Input,
    /// The request to the model.
    #[strum(to_string = "the model request")]
    Request,
    /// The completion.
    #[strum(to_string = "the model's answer")]
    Response,
    /// The arguments that the tool is given.
    #[strum(to_string = "the arguments of the call")]
    ToolArguments,
    /// Whether the tool is used.
    #[strum(to_string = "whether the tool is used")]
    ToolDecision,
    /// The result of a tool.
    #[strum(to_string = "the tool's result")]
    ToolResult,
    /// Messages that are in the history already.
    #[strum(to_string = "messages of the history")]
    History,
    /// The identity of the agent, its model and its counters.
    #[strum(to_string = "the agent's identity")]
    Identity,
    /// The steps, errors and times of the execution.
    #[strum(to_string = "the record of the execution")]
    Execution,
    /// The subject of the point.
    #[strum(to_string = "what the point is about")]
    Subject,
}

impl HookField {
    /// All fields, in the order of the table's columns.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the part of the state that is emitted when the field is changed.
    pub(super) fn state_part(self) -> Option<StatePart> {
        match self {
            Self::Metadata => Some(StatePart::Metadata),
            Self::Variables => Some(StatePart::Variables),
            Self::Resources => Some(StatePart::Resources),
            Self::SystemPrompt => Some(StatePart::SystemPrompt),
            Self::ResponseFormat => Some(StatePart::ResponseFormat),
            Self::Messages => Some(StatePart::Messages),
            Self::Input => Some(StatePart::Input),
            _ => None,
        }
    }

    /// Returns whether it is a part of the agent's state, including its execution.
    pub(super) fn is_of_state(self) -> bool {
        let is_of_others = matches!(
            self,
            Self::Variables
                | Self::Resources
                | Self::Input
                | Self::Request
                | Self::Response
                | Self::ToolArguments
                | Self::ToolDecision
                | Self::ToolResult
                | Self::Subject
        );
        !is_of_others
    }
}

/// The fields that the hooks of a point may change.
pub const PERMISSIONS: [(HookPoint, &[HookField]); 10] = {
    use HookField as F;
    use HookPoint as P;
    [
        (
            P::BeforeExecution,
            &[
                F::Metadata,
                F::Variables,
                F::Resources,
                F::SystemPrompt,
                F::ResponseFormat,
                F::Messages,
                F::Continuation,
                F::Usage,
                F::Input,
            ],
        ),
        (
            P::BeforeStep,
            &[
                F::Metadata,
                F::Variables,
                F::Resources,
                F::SystemPrompt,
                F::ResponseFormat,
                F::Messages,
                F::Continuation,
                F::Usage,
            ],
        ),
        (
            P::BeforeModelRequest,
            &[F::Metadata, F::Variables, F::Resources, F::Continuation, F::Request],
        ),
        (
            P::AfterModelRequest,
            &[F::Metadata, F::Variables, F::Resources, F::Continuation, F::Response],
        ),
        (
            P::BeforeToolUse,
            &[
                F::Metadata,
                F::Variables,
                F::Resources,
                F::Continuation,
                F::ToolArguments,
                F::ToolDecision,
            ],
        ),
        (
            P::AfterToolUse,
            &[F::Metadata, F::Variables, F::Resources, F::Continuation, F::ToolResult],
        ),
        (
            P::OnError,
            &[
                F::Metadata,
                F::Variables,
                F::Resources,
                F::Messages,
                F::Continuation,
                F::Usage,
            ],
        ),
        (
            P::AfterStep,
            &[
                F::Metadata,
                F::Variables,
                F::Resources,
                F::Messages,
                F::Continuation,
                F::Usage,
            ],
        ),
        (
            P::OnStop,
            &[F::Metadata, F::Variables, F::Resources, F::Messages, F::Usage],
        ),
        (P::AfterExecution, &[F::Metadata, F::Variables, F::Resources]),
    ]
};

/// Returns whether the hooks of the point may change the field.
pub fn is_permitted(point: HookPoint, field: HookField) -> bool {
    PERMISSIONS
        .iter()
        .any(|(permitted, fields)| *permitted == point && fields.contains(&field))
}

/// Returns the fields that a hook has changed.
pub(super) fn changed_fields(before: &HookContext, after: &HookContext) -> Vec<HookField> {
    let point = (before.point != after.point).then_some(HookField::Subject);
    let state = state_changes(&before.state, &after.state);
    let environment = environment_changes(&before.environment, &after.environment);
    let subject = subject_changes(&before.subject, &after.subject);
    let parts = state.into_iter().chain(environment).chain(subject);
    point.into_iter().chain(parts).collect()
}

fn environment_changes(before: &EnvironmentValues, after: &EnvironmentValues) -> Vec<HookField> {
    changed([
        (HookField::Variables, before.variables != after.variables),
        (HookField::Resources, before.resources != after.resources),
    ])
}

fn state_changes(before: &AgentState, after: &AgentState) -> Vec<HookField> {
    let (left, right) = (before.context(), after.context());
    let inherited = left.store.history();
    let now = right.store.history();
    // Committed messages never change, so comparing the last inherited one is enough. A history may
    // hold no inherited message.
    let is_continued = inherited.first_index() == now.first_index()
        && inherited.len() <= now.len()
        && inherited.last().is_none_or(|left| {
            let right = now.get(inherited.len() - 1);
            right.is_some_and(|right| Arc::ptr_eq(left, right) || left == right)
        });
    let executions = before.execution().zip(after.execution());
    changed([
        (HookField::Metadata, left.metadata != right.metadata),
        (HookField::SystemPrompt, left.system_prompt != right.system_prompt),
        (HookField::ResponseFormat, left.response_format != right.response_format),
        (HookField::History, !is_continued),
        (HookField::Messages, is_continued && inherited.len() != now.len()),
        (HookField::Identity, identity(before) != identity(after)),
        (
            HookField::Continuation,
            executions.is_some_and(|(left, right)| left.continuation != right.continuation),
        ),
        (
            HookField::Usage,
            executions.is_some_and(|(left, right)| left.hook_usage != right.hook_usage),
        ),
        (
            HookField::Execution,
            !is_same_execution(before.execution(), after.execution()),
        ),
    ])
}

fn identity(state: &AgentState) -> impl PartialEq + '_ {
    (
        state.agent_id(),
        state.parent_agent_id(),
        state.created_at(),
        state.execution_count(),
        state.model(),
        &state.context().overrides,
        &state.context().waiting,
        &state.context().remembered_approvals,
        &state.context().tool_pins,
    )
}

fn is_same_execution(before: Option<&ExecutionState>, after: Option<&ExecutionState>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return before.is_none() && after.is_none();
    };
    let steps = before.step_count() == after.step_count()
        && is_shared(before.step_executions.last(), after.step_executions.last());
    let current = is_shared(before.current_step.as_ref(), after.current_step.as_ref());
    let facts = |execution: &ExecutionState| {
        (
            execution.execution_id,
            execution.status,
            execution.started_at,
            execution.completed_at,
            execution.current_step_started_at,
        )
    };
    steps && current && facts(before) == facts(after) && before.errors == after.errors
}

/// Returns whether both are the same allocation, or both are absent.
fn is_shared<T>(left: Option<&Arc<T>>, right: Option<&Arc<T>>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => Arc::ptr_eq(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}

fn subject_changes(before: &HookSubject, after: &HookSubject) -> Vec<HookField> {
    use HookSubject as S;
    match (before, after) {
        // Requests are not compared: every point with a request permits changes, without an event,
        // and a comparison would read all messages.
        (S::State, S::State) | (S::Request(_), S::Request(_)) => Vec::new(),
        (S::Input(left), S::Input(right)) => changed([(HookField::Input, left != right)]),
        (S::Response(left), S::Response(right)) => response_changes(left, right),
        (S::ToolUse(left), S::ToolUse(right)) => tool_use_changes(left, right),
        (S::ToolExecution(left), S::ToolExecution(right)) => tool_execution_changes(left, right),
        (S::Errors(left), S::Errors(right)) => changed([(HookField::Subject, left != right)]),
        _ => vec![HookField::Subject],
    }
}

/// Returns the changed fields of a response. Usage and the model are facts that no hook may change.
fn response_changes(before: &ModelResponse, after: &ModelResponse) -> Vec<HookField> {
    let facts = |response: &ModelResponse| (response.usage, response.model.clone(), response.response_id.clone());
    let content = before.content != after.content
        || before.finish_reason != after.finish_reason
        || before.provider_fields != after.provider_fields;
    changed([
        (HookField::Subject, facts(before) != facts(after)),
        (HookField::Response, content),
    ])
}

fn tool_use_changes(before: &ToolUse, after: &ToolUse) -> Vec<HookField> {
    let named = (&before.call.id, &before.call.name, &before.call.signature)
        == (&after.call.id, &after.call.name, &after.call.signature)
        && before.approved == after.approved
        && before.continuation == after.continuation;
    changed([
        (HookField::Subject, !named),
        (HookField::ToolArguments, before.call.arguments != after.call.arguments),
        (HookField::ToolDecision, before.decision != after.decision),
    ])
}

fn tool_execution_changes(before: &ToolExecution, after: &ToolExecution) -> Vec<HookField> {
    let result = before.content != after.content || before.error != after.error;
    let facts = ToolExecution {
        content: before.content.clone(),
        error: before.error.clone(),
        ..after.clone()
    };
    changed([(HookField::Subject, facts != *before), (HookField::ToolResult, result)])
}

/// Returns the fields that are marked as changed.
fn changed(fields: impl IntoIterator<Item = (HookField, bool)>) -> Vec<HookField> {
    let marked = fields.into_iter().filter(|(_, is_changed)| *is_changed);
    marked.map(|(field, _)| field).collect()
}
