//! Drivers make one step: state in, state out. They see the state and the ports that they were
//! given, and nothing else.
//!
//! ```text
//! exchange.rs  before_model_request ─ model ─ after_model_request     for each model of the chain
//! tool_use.rs  before_tool_use      for each call, in order
//!              the tools            concurrently
//!              after_tool_use       as each call ends
//! ```
//!
//! *Errors are data.* A driver puts each error into the step. The error policy alone decides what
//! follows (`hooks/error_policy.rs`). There is one exception: a driver corrects some errors itself,
//! such as a response that violates its format, or a `ReAct` decision that can't be parsed. It then
//! asks for a retry, within a limit, and the policy leaves that step alone.
//!
//! *What is stored is neutral.* Drivers and providers differ in requests only. So any driver and
//! any model can continue any session.

mod ports;
mod react;
mod scripted;
mod tool_calling;

mod step;

mod ask;
mod call_ends;
mod exchange;
mod structured;
mod tool_use;

mod deltas;
mod estimate;
mod partial;

use std::fmt;

use futures_util::future::BoxFuture;

pub use self::ask::{AskError, Question, ask};
pub use self::estimate::{content_bytes, estimated_tokens, estimated_usage, request_bytes};
pub use self::ports::{DriverPorts, ModelChain, ModelChoice};
pub use self::react::ReactDriver;
pub use self::scripted::ScriptedDriver;
pub use self::tool_calling::ToolCallingDriver;
use super::progress::PendingStep;
use super::state::AgentState;
use crate::ids::StepId;

/// Makes steps.
pub trait Driver: Send + Sync + fmt::Debug {
    /// Makes one step and returns the state that holds it. What fails is in the step, and the error
    /// policy decides what follows; a step that must be the last brings a stop signal.
    fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState>;

    /// Ends a step that another process has left among its calls, and returns the state that holds
    /// it.
    fn resume_step(&self, state: AgentState, pending: PendingStep) -> BoxFuture<'_, AgentState>;
}
