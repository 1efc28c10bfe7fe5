//! The driver that plays a script. It calls no model, but it executes tools and calls the hooks
//! around them.

use super::deltas::{Emitted, emit_rest};
use super::exchange::Exchange;
use super::ports::DriverPorts;
use super::step::{call_id, carry_out, end, end_unprepared, prepare_format};
use crate::definition::ScriptStep;
use crate::run_error::RunErrorCode;
use crate::state::{AgentError, AgentState, AgentStep, ErrorKind, FinishReason, ModelResponse, StopReason, StopSignal};
use values::ids::StepId;
use values::message::{ContentPart, ToolCall};

/// Names the driver in errors and stop signals.
const SCRIPT: &str = "script";

/// Plays the next step of the script; each execution begins with the first.
pub(super) async fn make_step(
    ports: &DriverPorts,
    script: &[ScriptStep],
    state: AgentState,
    step_id: StepId,
) -> AgentState {
    let (state, messages) = state.compiled(&*ports.compiler);
    let step = AgentStep::new(step_id, messages);
    let format = match prepare_format(ports, &state).await {
        Ok(format) => format,
        Err(unprepared) => return end_unprepared(ports, state, step, unprepared),
    };
    let Some(played) = script.get(state.step_count()) else {
        return end_of_script(ports, script.len(), state, step);
    };
    let response = response(ports, played, step_id);
    ports.control.spend(response.usage);
    let step_number = state.step_count() + 1;
    emit_rest(
        &*ports.events,
        step_number,
        &response.content,
        Emitted::Nothing,
        Emitted::Everything,
    );
    let error = played.error.as_ref().map(|error| AgentError {
        kind: error.kind,
        code: RunErrorCode::ScriptedError.into(),
        message: error.message.clone(),
        source_name: Some(SCRIPT.to_owned()),
    });
    let exchange = Exchange {
        error,
        ..Exchange::of(response)
    };
    carry_out(ports, state, step, &format, exchange).await
}

fn response(ports: &DriverPorts, script: &ScriptStep, step_id: StepId) -> ModelResponse {
    let text = (!script.text.is_empty()).then(|| ContentPart::text(&script.text));
    let calls = script.tool_calls.iter().enumerate().map(|(index, call)| {
        ContentPart::ToolCall(ToolCall {
            id: call_id(step_id, index),
            name: call.name.clone(),
            arguments: serde_json::Value::Object(call.arguments.clone()).to_string(),
            signature: None,
        })
    });
    let price = ports.models.preferred().price.as_ref();
    ModelResponse {
        content: text.into_iter().chain(calls).collect(),
        provider_fields: None,
        finish_reason: if script.error.is_some() {
            FinishReason::Interrupted
        } else if script.tool_calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        },
        usage: script.usage.priced(price),
        provider_tool_calls: std::collections::BTreeMap::new(),
        model: None,
        response_id: None,
    }
}

/// Ends the execution after the last step of the script. Nothing overrides this end, since no
/// policy can extend a script.
fn end_of_script(ports: &DriverPorts, steps: usize, state: AgentState, mut step: AgentStep) -> AgentState {
    let message = format!("the script has ended: it has {steps} steps, and one more is wanted");
    step.errors.push(AgentError {
        kind: ErrorKind::Unknown,
        code: RunErrorCode::ScriptEnded.into(),
        message: message.clone(),
        source_name: Some(SCRIPT.to_owned()),
    });
    let signal = StopSignal::new(StopReason::ErrorForbade, SCRIPT, message).binding();
    end(ports, state, step, Some(signal), None)
}
