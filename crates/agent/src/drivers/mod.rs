//! Drivers make one step: state in, state out. They access only the state and their ports.
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
//! *The stored form is neutral.* Drivers and providers differ only in requests. So any driver and
//! any model can continue any session.

mod ports;
mod react;
mod scripted;
mod tool_calling;

mod step;

mod ask;
mod bounds;
mod call_ends;
mod exchange;
mod structured;
mod tool_use;

mod deltas;
mod partial;

use futures_util::future::BoxFuture;

pub use self::ask::{AskError, Question, ask};
pub use self::ports::DriverPorts;
use self::step::{answer, finish};
use super::answers::AnsweredStep;
use super::state::AgentState;
use crate::definition::{DriverKind, ScriptStep};
use crate::journal::PendingStep;
use values::ids::StepId;

/// Makes the steps of an execution.
#[derive(Debug)]
pub struct Driver {
    ports: DriverPorts,
    kind: DriverKind,
    script: Vec<ScriptStep>,
}

impl Driver {
    /// Makes a driver. Only the scripted driver uses the script.
    pub fn new(ports: DriverPorts, kind: DriverKind, script: Vec<ScriptStep>) -> Self {
        Self { ports, kind, script }
    }

    /// Makes one step and returns the state with the step. The step contains its errors, and the
    /// error policy decides what follows. A step that must be the last adds a stop signal.
    pub fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState> {
        match self.kind {
            DriverKind::ToolCalling => Box::pin(tool_calling::make_step(&self.ports, state, step_id)),
            DriverKind::React => Box::pin(react::make_step(&self.ports, state, step_id)),
            DriverKind::Scripted => Box::pin(scripted::make_step(&self.ports, &self.script, state, step_id)),
        }
    }

    /// Finishes the step of a waiting session, and returns the state with the step.
    pub fn answer_step(&self, state: AgentState, answered: AnsweredStep) -> BoxFuture<'_, AgentState> {
        Box::pin(answer(&self.ports, state, answered))
    }

    /// Ends a step that another process left during its calls, and returns the state with the step.
    pub fn resume_step(&self, state: AgentState, pending: PendingStep) -> BoxFuture<'_, AgentState> {
        Box::pin(finish(&self.ports, state, pending))
    }
}
