//! The driver for models without tool support: thought, action and observation, all as text.
//!
//! The stored form is neutral: the thought before an action is text, the action is a tool call, and
//! the observation is its result. Only requests show them as text. So another driver or model can
//! continue the session at any time. The events have the same parts.
//!
//! A decision that can't be parsed never completes a run silently. The model corrects it within a
//! limit, or a binding stop signal fails the run.

mod decision;
mod instructions;
mod transcript;

use self::decision::{Choice, Decision, read_decision};
use self::instructions::instructions;
use self::transcript::{UNREADABLE, rendered};
use super::deltas::{Emitted, emit_rest};
use super::exchange::{Exchange, exchange};
use super::ports::DriverPorts;
use super::step::{
    Fault, Prepared, Unprepared, call_id, carry_out, end_unprepared, end_with_fault, has_error, prepare,
    validation_error,
};
use super::structured::with_paragraph;
use crate::ports::ModelRequest;
use crate::response_format::CompiledFormat;
use crate::run_error::RunErrorCode;
use crate::state::{AgentError, AgentState, AgentStep, FinishReason, ModelResponse};
use values::ids::StepId;
use values::message::{ContentPart, ReasoningPart, ToolCall, joined_text};
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

/// The most corrections of a decision in a row.
const MAX_CORRECTIONS: usize = 2;

/// Asks the model for one decision, then executes the tool that it chose.
pub(in crate::drivers) async fn make_step(ports: &DriverPorts, state: AgentState, step_id: StepId) -> AgentState {
    let (state, messages) = state.compiled(&*ports.compiler);
    let step = AgentStep::new(step_id, messages);
    let prepared = prepare(ports, &state, &step.input_messages).await;
    let in_words = prepared.and_then(|Prepared { format, request }| {
        let request = in_words(request, &format).map_err(Unprepared::Failed)?;
        Ok(Prepared { format, request })
    });
    let Prepared { format, request } = match in_words {
        Ok(prepared) => prepared,
        Err(unprepared) => return end_unprepared(ports, state, step, unprepared),
    };
    let (state, asked) = exchange(ports.for_exchange(), state, request, Emitted::Reasoning).await;
    let asked = without_calls(asked);
    let step_number = state.step_count() + 1;
    match read(&asked) {
        Some(Ok(decision)) => {
            let decided = emit_decision(ports, asked, decision, &step, step_number);
            carry_out(ports, state, step, &format, decided).await
        }
        Some(Err(fault)) => end_malformed(ports, state, step, asked, &fault),
        None => {
            let shown = emit_declined(ports, asked, step_number);
            carry_out(ports, state, step, &format, shown).await
        }
    }
}

/// Emits the decision, and returns the exchange with the decision in its neutral form.
fn emit_decision(
    ports: &DriverPorts,
    asked: Exchange,
    decision: Decision,
    step: &AgentStep,
    step_number: usize,
) -> Exchange {
    let Decision { thought, choice } = decision;
    let has_thought = !thought.is_empty();
    let (thought, said, finish_reason) = match choice {
        Choice::Act { tool, arguments } => {
            let call = ToolCall {
                id: call_id(step.id, 0),
                name: tool,
                arguments,
                signature: None,
            };
            let thought = ContentPart::text(thought);
            (thought, ContentPart::ToolCall(call), FinishReason::ToolCalls)
        }
        Choice::Answer(words) => {
            let thought = ContentPart::Reasoning(ReasoningPart {
                text: thought,
                ..ReasoningPart::default()
            });
            (thought, ContentPart::text(words), FinishReason::Stop)
        }
    };
    let parts: Vec<_> = has_thought.then_some(thought).into_iter().chain([said]).collect();
    emit_rest(
        &*ports.events,
        step_number,
        &parts,
        Emitted::Nothing,
        Emitted::Everything,
    );
    let response = asked.response.map(|response| ModelResponse {
        content: without_text(response.content).chain(parts).collect(),
        finish_reason,
        ..response
    });
    Exchange { response, ..asked }
}

/// Emits a completion that declines, and returns the exchange with what was emitted. A decision
/// that was cut is raw text, which no event has.
fn emit_declined(ports: &DriverPorts, asked: Exchange, step_number: usize) -> Exchange {
    let response = asked.response.map(|response| {
        if !is_declined(&response) {
            return ModelResponse {
                content: without_text(response.content).collect(),
                ..response
            };
        }
        emit_rest(
            &*ports.events,
            step_number,
            &response.content,
            Emitted::Reasoning,
            Emitted::Everything,
        );
        response
    });
    Exchange { response, ..asked }
}

fn without_text(content: Vec<ContentPart>) -> impl Iterator<Item = ContentPart> {
    content.into_iter().filter(|part| part.as_text().is_none())
}

/// Ends a step whose decision is malformed. Retains the text of the model for a correction.
fn end_malformed(
    ports: &DriverPorts,
    state: AgentState,
    mut step: AgentStep,
    asked: Exchange,
    fault: &str,
) -> AgentState {
    step.answered_by = asked.answered_by;
    step.model_requests = asked.requests;
    if let Some(response) = asked.response {
        step.output_messages
            .extend(ports.assistant_message(&response, asked.failed_usage));
        step.response = Some(response);
    }
    let newest = state.steps().rev();
    let in_a_row = newest.take_while(|step| has_error(step, RunErrorCode::DecisionMalformed));
    let fault = Fault {
        code: RunErrorCode::DecisionMalformed,
        message: format!("the model's decision can't be read: {fault}"),
        advice: format!("{UNREADABLE}{fault}. Answer with exactly one JSON object as described above."),
        is_correctable: in_a_row.count() < MAX_CORRECTIONS,
    };
    end_with_fault(ports, state, step, fault)
}

/// Returns the request with instructions instead of tools. The instructions also describe the
/// response format, since a decision has a format of its own.
fn in_words(request: ModelRequest, format: &CompiledFormat) -> Result<ModelRequest, AgentError> {
    if request.tool_choice != ToolChoice::Auto {
        let words = "only the driver tool_calling takes a tool_choice";
        return Err(validation_error(RunErrorCode::UnsupportedToolChoice, words.to_owned()));
    }
    Ok(ModelRequest {
        system: with_paragraph(&request.system, &instructions(&request.tools, &request.response_format)),
        messages: rendered(&request.messages.to_vec(), !format.is_text()),
        tools: [].into(),
        response_format: ResponseFormat::Text,
        ..request
    })
}

/// Parses the decision; the error says what is wrong with it. Returns `None` if the completion was
/// cut, refused or failed.
fn read(asked: &Exchange) -> Option<Result<Decision, String>> {
    let is_whole = asked.signal.is_none() && asked.error.is_none() && asked.hook_failure.is_none();
    let response = asked.response.as_ref().filter(|_| is_whole);
    let response = response.filter(|response| !is_declined(response))?;
    if let Some(cut) = response.finish_reason.cut() {
        return Some(Err(cut));
    }
    Some(read_decision(&joined_text(&response.content)))
}

/// Returns whether the model or its provider refused, or paused.
fn is_declined(response: &ModelResponse) -> bool {
    response.is_refusal() || response.finish_reason == FinishReason::PauseTurn
}

/// Removes the calls of a model that was offered no tools, since they get no results.
fn without_calls(asked: Exchange) -> Exchange {
    let response = asked.response.map(|response| {
        let content = response.content.into_iter();
        ModelResponse {
            content: content
                .filter(|part| !matches!(part, ContentPart::ToolCall(_)))
                .collect(),
            ..response
        }
    });
    Exchange { response, ..asked }
}
