//! The data that an agent and a subagent exchange: the tool's description, the task and the result.

use serde::Deserialize;
use serde_json::json;

use crate::run::work::execution_error;
use agent::definition::{AgentDefinition, SubagentConfig};
use agent::ports::ToolSpec;
use agent::state::{AgentState, FinishReason};
use values::json::Value;
use values::message::{Role, joined_text};
use workspace::MergeConflict;

/// The most paths that a note about conflicts names.
const MAX_NAMED_CONFLICTS: usize = 20;

/// The arguments of a call.
#[derive(Debug, Deserialize)]
pub(super) struct Task {
    task: String,
    #[serde(default)]
    context: String,
}

impl Task {
    /// Reads arguments that match the schema. Returns `None` if they have no task.
    pub(super) fn read(arguments: Value) -> Option<Self> {
        let task: Self = serde_json::from_value(arguments).ok()?;
        (!task.task.trim().is_empty()).then_some(task)
    }

    /// Returns the text of the subagent's first message.
    pub(super) fn into_text(self) -> String {
        let Self { task, context } = self;
        if context.trim().is_empty() {
            task
        } else {
            format!("{task}\n\nContext:\n{context}")
        }
    }
}

/// Returns the description of the tool for models.
pub(super) fn spec_of(subagent: &SubagentConfig, agent: &AgentDefinition) -> ToolSpec {
    let own = Some(&agent.description).filter(|description| !description.is_empty());
    let description = subagent.description.as_ref().or(own).cloned();
    ToolSpec {
        name: subagent.tool_name(),
        description: description.unwrap_or_else(|| {
            let name = &agent.name;
            format!("Has another agent, {name}, work on a task and returns its answer.")
        }),
        parameters: json!({
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What is to be done. The agent knows nothing of this conversation, so say everything that it needs."
                },
                "context": {
                    "type": "string",
                    "description": "Material to work with: texts, figures, earlier results."
                }
            },
            "required": ["task"],
            "additionalProperties": false
        }),
        idempotent: false,
        read_only: false,
        destructive: false,
        timeout: None,
    }
}

/// Returns the result of a subagent that completed its task.
pub(super) fn completed(name: &str, state: &AgentState) -> String {
    let answer = state.final_text();
    let is_empty = answer.trim().is_empty();
    match state.finish_reason().and_then(FinishReason::cut) {
        None if is_empty => format!("[The agent {name} has ended without a word.]"),
        Some(cut) if is_empty => format!("[The answer of the agent {name} is empty: {cut}.]"),
        Some(cut) => format!("{answer}\n\n[This answer of the agent {name} is not complete: {cut}.]"),
        None => answer,
    }
}

/// Returns the note about files that this agent and the subagent have both changed.
pub(super) fn conflicting(conflicts: &[MergeConflict]) -> String {
    let named = conflicts.iter().take(MAX_NAMED_CONFLICTS);
    let named: Vec<_> = named.map(|conflict| conflict.path.as_str()).collect();
    let more = match conflicts.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "[Its changes of files are not in your workspace, because both of you have changed: {}{more}. They are in the \
         session of the agent only.]",
        named.join(", ")
    )
}

/// Returns the result of a subagent that was stopped before it completed its task, as the model
/// sees it.
pub(super) fn stopped(name: &str, state: &AgentState) -> String {
    let why = state.stop_signal().map(|signal| signal.message.as_str());
    let why = why.unwrap_or("it had to stop");
    match last_words(state) {
        Some(words) => format!(
            "[The agent {name} was stopped before its work was done: {why}. Until then it had said:]\n\n{words}"
        ),
        None => format!("[The agent {name} was stopped before its work was done: {why}. It had said nothing yet.]"),
    }
}

/// Returns the result of a subagent that failed, as the model sees it.
pub(super) fn failed(name: &str, state: &AgentState) -> String {
    let error = execution_error(state);
    format!("the agent {name} failed: {} ({})", error.message, error.code)
}

/// Returns the last text of the agent, also if it accompanies a tool call.
fn last_words(state: &AgentState) -> Option<String> {
    let execution = state.execution()?;
    let steps = execution.step_executions.iter().rev();
    let messages = steps.flat_map(|step| step.step.output_messages.iter().rev());
    let said = messages.filter(|message| message.role == Role::Assistant);
    said.map(|message| joined_text(&message.content))
        .find(|words| !words.trim().is_empty())
}
