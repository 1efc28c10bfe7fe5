//! The driver for models that call tools through their provider's API: asks the model once, then
//! executes the tools that it asks for.

use super::deltas::Emitted;
use super::exchange::exchange;
use super::ports::DriverPorts;
use super::step::{Prepared, carry_out, end_unprepared, prepare};
use crate::state::{AgentState, AgentStep};
use values::ids::StepId;

pub(super) async fn make_step(ports: &DriverPorts, state: AgentState, step_id: StepId) -> AgentState {
    let (state, messages) = state.compiled(&*ports.compiler);
    let step = AgentStep::new(step_id, messages);
    let Prepared { format, request } = match prepare(ports, &state, &step.input_messages).await {
        Ok(prepared) => prepared,
        Err(unprepared) => return end_unprepared(ports, state, step, unprepared),
    };
    let (state, asked) = exchange(ports.for_exchange(), state, request, Emitted::Everything).await;
    carry_out(ports, state, step, &format, asked).await
}
