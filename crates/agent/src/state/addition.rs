//! The difference between a state and an earlier one, for storing a step at a cost that does not
//! grow with the conversation.
//!
//! `state.since(&earlier)` returns the new messages and steps and all other changes.
//! `addition.onto(earlier)` returns the later state. The first addition applies to the state that
//! was restored from the bundle, so the contents of a bundle are not stored again.
//!
//! Contains no bytes; the store encodes it.

use rpds::VectorSync;

use super::agent_state::AgentState;
use super::context::{AgentContext, MessageStore};
use super::execution::ExecutionState;
use values::session::History;

/// The messages and steps that were added to an earlier state, and all other parts that may have
/// changed.
///
/// The earlier state with the addition equals the later state without its transient parts. The
/// first addition of an execution applies to the state that the execution began with, whose history
/// is in a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct StateAddition {
    /// The number of steps before the first that is added.
    pub(super) first_step: usize,
    /// Whether `state` contains the context without its messages. If not, the context has not
    /// changed.
    pub(super) has_context: bool,
    /// The later state with the new messages and steps only.
    pub(super) state: AgentState,
}

/// The gap between a state and an addition, or another entry of a journal, that does not fit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdditionGap {
    /// The state is another agent's.
    #[error("the addition is to the state of another agent")]
    Agent,
    /// Messages or steps in between are missing, or are already in the state.
    #[error(
        "the addition begins after {first_message} messages and {first_step} steps, and the state has {messages} and {steps}"
    )]
    Position {
        /// The number of messages before the first that is added.
        first_message: usize,
        /// The number of steps before the first that is added.
        first_step: usize,
        /// The number of messages in the state.
        messages: usize,
        /// The number of steps in the state.
        steps: usize,
    },
    /// A call belongs to no step in progress, or its agent has no entry.
    #[error("nothing is known of the call {index} of a step")]
    Call {
        /// The index of the call in its step.
        index: usize,
    },
}

impl AgentState {
    /// Returns the addition since an earlier state: the state at the beginning of the execution, or
    /// after one of its completed steps.
    pub fn since(&self, earlier: &Self) -> StateAddition {
        let first_step = earlier.steps_in_common(self);
        let has_context = shared_context(&self.context) != shared_context(&earlier.context);
        let first_message = earlier.context.store.history().len();
        let new = self.context.store.history().iter_from(first_message).cloned();
        let store = MessageStore::new(History::starting_at(first_message, new));
        let mut state = self.clone();
        state.context = if has_context {
            AgentContext { store, ..state.context }
        } else {
            AgentContext {
                store,
                ..AgentContext::default()
            }
        };
        state.execution = state.execution.map(|execution| {
            let steps = &execution.step_executions;
            let new = (first_step..steps.len()).filter_map(|at| steps.get(at).cloned());
            Box::new(ExecutionState {
                step_executions: new.collect(),
                current_step: None,
                current_step_started_at: None,
                ..*execution
            })
        });
        StateAddition {
            first_step,
            has_context,
            state,
        }
    }

    /// Returns the number of completed steps that both states share in the same execution.
    fn steps_in_common(&self, other: &Self) -> usize {
        let id = |state: &Self| state.execution.as_ref().map(|execution| execution.execution_id);
        if id(self) == id(other) { self.step_count() } else { 0 }
    }
}

impl StateAddition {
    /// Returns the later state with the new messages and steps only.
    pub fn state(&self) -> &AgentState {
        &self.state
    }

    /// Returns the later state, made from the earlier one.
    pub fn onto(self, earlier: AgentState) -> Result<AgentState, AdditionGap> {
        let Self {
            first_step,
            has_context,
            mut state,
        } = self;
        if earlier.agent_id() != state.agent_id() {
            return Err(AdditionGap::Agent);
        }
        let new = state.context.store.history();
        let steps = earlier.steps_in_common(&state);
        let messages = earlier.context.store.history().len();
        if (new.first_index(), first_step) != (messages, steps) {
            return Err(AdditionGap::Position {
                first_message: new.first_index(),
                first_step,
                messages,
                steps,
            });
        }
        let new: Vec<_> = new.iter().cloned().collect();
        let store = earlier.context.store.clone().with_messages(new);
        let context = if has_context { state.context } else { earlier.context };
        state.context = AgentContext { store, ..context };
        let before = earlier.execution.filter(|_| steps > 0);
        state.execution = state.execution.map(|execution| {
            let before = before.map_or_else(VectorSync::new_sync, |execution| execution.step_executions);
            let all = execution.step_executions.iter().cloned();
            Box::new(ExecutionState {
                step_executions: all.fold(before, |steps, step| steps.push_back(step)),
                ..*execution
            })
        });
        Ok(state)
    }
}

fn shared_context(context: &AgentContext) -> impl PartialEq + '_ {
    (
        &context.metadata,
        &context.system_prompt,
        &context.instructions,
        &context.response_format,
        &context.overrides,
        &context.waiting,
        &context.remembered_approvals,
        &context.tool_pins,
    )
}
