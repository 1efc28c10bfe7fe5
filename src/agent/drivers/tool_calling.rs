//! The driver for models that call tools through their provider's API.

use futures_util::future::BoxFuture;

use super::Driver;
use super::deltas::Emitted;
use super::exchange::exchange;
use super::ports::DriverPorts;
use super::step::{Prepared, carry_out, end_unprepared, finish, prepare};
use crate::agent::progress::PendingStep;
use crate::agent::state::{AgentState, AgentStep};
use crate::ids::StepId;

/// Asks the model once, then executes the tools that it asks for.
#[derive(Debug)]
pub struct ToolCallingDriver {
    ports: DriverPorts,
}

impl ToolCallingDriver {
    /// Makes a driver.
    pub fn new(ports: DriverPorts) -> Self {
        Self { ports }
    }

    async fn make_step(&self, state: AgentState, step_id: StepId) -> AgentState {
        let ports = &self.ports;
        let step = AgentStep::new(step_id, state.messages(&*ports.compiler));
        let Prepared { shape, request } = match prepare(ports, &state, &step.input_messages).await {
            Ok(prepared) => prepared,
            Err(unprepared) => return end_unprepared(ports, state, step, unprepared),
        };
        let (state, asked) = exchange(ports, state, request, Emitted::Everything).await;
        carry_out(ports, state, step, &shape, asked).await
    }
}

impl Driver for ToolCallingDriver {
    fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState> {
        Box::pin(self.make_step(state, step_id))
    }

    fn resume_step(&self, state: AgentState, pending: PendingStep) -> BoxFuture<'_, AgentState> {
        Box::pin(finish(&self.ports, state, pending))
    }
}
