//! The pure state that flows through the loop (documents 000, 001 and 003). No IO.
//!
//! `AgentState` contains the lasting parts: identity, context and messages. During an execution it
//! also contains an `ExecutionState`. Every transition consumes a state and returns the next.
//! Messages are in a persistent vector, so a copy costs the same at any length. A step's type, its
//! number and the reason of a stop are derived, never stored.
//!
//! A bundle stores the state without its execution (model A of document 000). The entries of a
//! journal store it with its execution (model B): each contains a `StateAddition` (`addition.rs`).
//!
//! Document 000 has a `CachedContext` that lasts with the session. This code has no such field,
//! because a compiled request is a pure function of the history. The provider caches its prefix,
//! and the store caches bundles (`store/cache.rs`). A history in memory retains values computed
//! from messages that no later turn changes (`session/request_prefix.rs`). So no cached context can
//! become stale.

mod addition;
mod agent_state;
mod budget;
mod context;
mod continuation;
mod conversation;
mod error;
mod execution;
mod messages;
mod model_request;
mod response;
mod step;
mod stop;
mod stored;
mod tool_execution;
mod transitions;

pub use self::addition::{AdditionGap, StateAddition};
pub use self::agent_state::AgentState;
pub use self::budget::ExecutionBudget;
pub use self::context::{AgentContext, MessageStore};
pub use self::continuation::ExecutionContinuation;
pub use self::error::{AgentError, ErrorKind, ErrorList};
pub use self::execution::{ExecutionState, ExecutionStatus};
pub use self::messages::Messages;
pub use self::model_request::ModelRequestTrace;
pub use self::response::{FinishReason, ModelResponse};
pub use self::step::{AgentStep, AgentStepType, StepExecution};
pub use self::stop::{StopReason, StopSignal};
pub use self::tool_execution::{NeededInput, SubagentExecution, ToolExecution, ToolTrace, ToolVerdict};
