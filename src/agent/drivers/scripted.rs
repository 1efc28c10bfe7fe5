//! The driver that plays a script. It calls no model, but it executes tools and calls the hooks
//! around them.

use futures_util::future::BoxFuture;

use super::Driver;
use super::deltas::{Emitted, emit_rest};
use super::exchange::Exchange;
use super::ports::DriverPorts;
use super::step::{call_id, carry_out, end, end_unprepared, finish, prepare_shape};
use crate::agent::progress::PendingStep;
use crate::agent::run_error::RunErrorCode;
use crate::agent::script::ScriptStep;
use crate::agent::state::{
    AgentError, AgentState, AgentStep, ErrorKind, FinishReason, ModelResponse, StopReason, StopSignal,
};
use crate::ids::StepId;
use crate::message::{ContentPart, ToolCall};
use crate::usage::Usage;

/// Names the driver in errors and stop signals.
const SCRIPT: &str = "script";

/// Plays the steps of a script in their order; each execution begins with the first.
#[derive(Debug)]
pub struct ScriptedDriver {
    ports: DriverPorts,
    script: Vec<ScriptStep>,
}

impl ScriptedDriver {
    /// Makes a driver of a script.
    pub fn new(ports: DriverPorts, script: Vec<ScriptStep>) -> Self {
        Self { ports, script }
    }

    async fn make_step(&self, state: AgentState, step_id: StepId) -> AgentState {
        let ports = &self.ports;
        let step = AgentStep::new(step_id, state.messages(&*ports.compiler));
        let shape = match prepare_shape(ports, &state).await {
            Ok(shape) => shape,
            Err(unprepared) => return end_unprepared(ports, state, step, unprepared),
        };
        let Some(script) = self.script.get(state.step_count()) else {
            return self.end_of_script(state, step);
        };
        let response = self.response(script, step_id);
        ports.control.spend(response.usage);
        let step_number = state.step_count() + 1;
        emit_rest(
            &*ports.events,
            step_number,
            &response.content,
            Emitted::Nothing,
            Emitted::Everything,
        );
        let played = Exchange {
            response: Some(response),
            failed_usage: Usage::NOTHING,
            answered_by: None,
            signal: None,
            error: script.error.as_ref().map(|error| AgentError {
                kind: error.kind,
                code: RunErrorCode::ScriptedError.into(),
                message: error.message.clone(),
                source_name: Some(SCRIPT.to_owned()),
            }),
            hook_failure: None,
        };
        carry_out(ports, state, step, &shape, played).await
    }

    fn response(&self, script: &ScriptStep, step_id: StepId) -> ModelResponse {
        let text = (!script.text.is_empty()).then(|| ContentPart::text(&script.text));
        let calls = script.tool_calls.iter().enumerate().map(|(index, call)| {
            ContentPart::ToolCall(ToolCall {
                id: call_id(step_id, index),
                name: call.name.clone(),
                arguments: serde_json::Value::Object(call.arguments.clone()).to_string(),
                signature: None,
            })
        });
        let price = self.ports.models.preferred().price.as_ref();
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

    /// No policy makes a script longer, so nothing overrides its end.
    fn end_of_script(&self, state: AgentState, mut step: AgentStep) -> AgentState {
        let message = format!(
            "the script has ended: it has {} steps, and one more is wanted",
            self.script.len()
        );
        step.errors = step.errors.with_error(AgentError {
            kind: ErrorKind::Unknown,
            code: RunErrorCode::ScriptEnded.into(),
            message: message.clone(),
            source_name: Some(SCRIPT.to_owned()),
        });
        let signal = StopSignal::new(StopReason::ErrorForbade, SCRIPT, message).binding();
        end(&self.ports, state, step, Some(signal), None)
    }
}

impl Driver for ScriptedDriver {
    fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState> {
        Box::pin(self.make_step(state, step_id))
    }

    fn resume_step(&self, state: AgentState, pending: PendingStep) -> BoxFuture<'_, AgentState> {
        Box::pin(finish(&self.ports, state, pending))
    }
}
