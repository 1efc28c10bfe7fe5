//! Drivers make one step: state in, state out. They see the state and the ports they were given, nothing else.

mod estimate;
mod partial;
mod tool_calling;

use std::fmt;

use futures_util::future::BoxFuture;

pub use self::estimate::{content_bytes, estimated_usage, request_bytes};
pub use self::tool_calling::{DriverPorts, ToolCallingDriver};
use super::state::AgentState;
use crate::ids::StepId;

/// Makes steps.
pub trait Driver: Send + Sync + fmt::Debug {
    /// Makes one step and returns the state that holds it. What fails is in the step; a step that must be the last brings a stop signal.
    fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState>;
}
