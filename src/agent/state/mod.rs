//! The pure state that flows through the loop (documents 000, 001 and 003). Every transition consumes a state and returns the next; no IO.

mod addition;
mod agent_state;
mod budget;
mod context;
mod continuation;
mod conversation;
mod error;
mod execution;
mod response;
mod step;
mod stop;
mod stored;
mod tool_execution;

pub use self::addition::{AdditionGap, StateAddition};
pub use self::agent_state::{AgentState, StateSummary};
pub use self::budget::ExecutionBudget;
pub use self::context::{AgentContext, MessageStore};
pub use self::continuation::ExecutionContinuation;
pub use self::error::{AgentError, ErrorKind, ErrorList};
pub use self::execution::{ExecutionState, ExecutionStatus};
pub use self::response::{FinishReason, ModelResponse};
pub use self::step::{AgentStep, AgentStepType, Messages, StepExecution};
pub use self::stop::{StopReason, StopSignal, StopSignals};
pub use self::tool_execution::{SubagentExecution, ToolExecution, ToolTrace, ToolVerdict};
