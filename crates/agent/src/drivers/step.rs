//! The parts of a step that all drivers share: send the request, execute the tools, check the final
//! response, end the step.
//!
//! Contains no driver's own format.

use std::sync::Arc;

use super::exchange::Exchange;
use super::ports::DriverPorts;
use super::tool_use::{Before, Used, use_tools};
use crate::answers::{AnsweredStep, OpenUse, suspended};
use crate::events::{AgentEvent, EventSink, StatePart};
use crate::hooks::HookFailure;
use crate::journal::{CallStage, PendingStep};
use crate::ports::{ModelRequest, OutputSink, ToolContext, ToolSpec};
use crate::prompt::{MAX_PROMPT_BYTES, is_template, render_prompt};
use crate::response_format::{CompiledFormat, FormatError};
use crate::run_error::RunErrorCode;
use crate::state::{AgentError, AgentState, AgentStep, ErrorKind, Messages, StopReason, StopSignal, ToolExecution};
use tasks::off_thread::off_thread;
use values::ids::StepId;
use values::json::{Object, Value};
use values::message::{ContentPart, Message, Role, ToolCall, joined_text};
use values::model_parameters::{ModelParameters, ToolChoice};
use workspace::environment::EnvironmentValues;

/// Names the driver as the source of stop signals.
const DRIVER: &str = "driver";

/// A mistake in a completion that the model is asked to correct.
#[derive(Debug)]
pub(super) struct Fault {
    /// The code of the error.
    pub(super) code: RunErrorCode,
    /// The fault, for people.
    pub(super) message: String,
    /// The fault and its correction, for the model.
    pub(super) advice: String,
    /// Whether the model is asked again, provided that a step remains.
    pub(super) is_correctable: bool,
}

/// The needs of a step before its request is sent.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The format of the final completion.
    pub(super) format: Arc<CompiledFormat>,
    /// The request, independent of the model.
    pub(super) request: ModelRequest,
}

/// The error that keeps a step from its beginning.
#[derive(Debug)]
pub(super) enum Unprepared {
    /// The prompt or the response format can't be used.
    Failed(AgentError),
    /// The execution was called off, or its time was spent.
    Cut(StopSignal),
}

/// Executes the requested tools or, if there are none, checks the final completion. Then ends the
/// step.
pub(super) async fn carry_out(
    ports: &DriverPorts,
    state: AgentState,
    mut step: AgentStep,
    format: &Arc<CompiledFormat>,
    exchange: Exchange,
) -> AgentState {
    let Exchange {
        response,
        failed_usage,
        answered_by,
        signal,
        error,
        hook_failure,
        left_out,
        requests,
        ..
    } = exchange;
    step.left_out = left_out.iter().map(ToString::to_string).collect();
    step.model_requests = requests;
    step.errors = error.into_iter().collect();
    step.answered_by = answered_by;
    if let Some(response) = response {
        step.output_messages
            .extend(ports.assistant_message(&response, failed_usage));
        step.response = Some(response);
    }
    if step.has_tool_calls() {
        let began = state
            .execution()
            .and_then(|execution| execution.current_step_started_at);
        let started_at = began.unwrap_or_else(|| ports.now());
        if let Some(journal) = &ports.journal {
            journal.calls_requested(&step, started_at, &state);
        }
        let pending = PendingStep::new(step, started_at);
        // Boxed, since most steps make no calls and need no memory for them.
        return Box::pin(make_calls(ports, state, pending, signal, hook_failure)).await;
    }
    let is_final = signal.is_none() && hook_failure.is_none() && !step.is_paused();
    if is_final && step.errors.is_empty() {
        let judged = tokio::select! {
            biased;
            verdict = judge(ports, &state, &step, format) => Ok(verdict),
            cut = ports.control.interrupted(ports.control.time_limit(&state)) => Err(cut),
        };
        match judged {
            Ok(Ok(value)) => step.value = value,
            Ok(Err(fault)) => return end_with_fault(ports, state, step, fault),
            Err(cut) => return end(ports, state, step, Some(cut), None),
        }
    }
    end(ports, state, step, signal, hook_failure)
}

/// Finishes the step of a waiting session with the answers to its open calls. The journal records
/// the step like one whose completion has just arrived.
pub(super) async fn answer(ports: &DriverPorts, state: AgentState, answered: AnsweredStep) -> AgentState {
    let pending = answered.into_pending(ports.now());
    if let Some(journal) = &ports.journal {
        journal.calls_requested(&pending.step, pending.started_at, &state);
        for (index, call) in pending.calls.iter().enumerate() {
            match &call.stage {
                CallStage::Ended(execution) => journal.ended(index, execution, &state),
                CallStage::Decided(tool_use) => journal.decided(index, tool_use, &state),
                CallStage::Open | CallStage::Edited(_) | CallStage::Begun(_) => (),
            }
        }
    }
    finish(ports, state, pending).await
}

/// Ends a step that was interrupted during its calls. Each call continues from its own state.
pub(super) async fn finish(ports: &DriverPorts, state: AgentState, pending: PendingStep) -> AgentState {
    let now = ports.now();
    let state = state.with_step_resumed(pending.started_at, now);
    make_calls(ports, state, pending, None, None).await
}

async fn make_calls(
    ports: &DriverPorts,
    state: AgentState,
    pending: PendingStep,
    signal: Option<StopSignal>,
    hook_failure: Option<HookFailure>,
) -> AgentState {
    let PendingStep { mut step, calls, .. } = pending;
    let Some(context) = tool_context(ports, &state) else {
        return end(ports, state, step, signal, hook_failure);
    };
    let before = Before {
        hook_failure,
        cut: step.cut(),
        is_last: signal.is_some(),
    };
    let (step_number, values) = (context.step_number, ports.environment.values());
    let Used { state, ended, open } = use_tools(ports, state, calls, context, before).await;
    emit_changes(ports, step_number, &values);
    if !open.is_empty() {
        return leave_open(ports, state, step, ended, open);
    }
    let executions: Vec<_> = ended.into_iter().flatten().collect();
    let state = ended_by_tools(ports, state, &executions);
    step.tool_executions = executions;
    step.output_messages.push(tool_message(ports, &step));
    // Another step would follow, so a stop ends the execution here. The calls that it cut are not
    // errors for the error policy.
    let signal = signal.or_else(|| ports.control.stopped());
    end(ports, state, step, signal, None)
}

/// Emits the parts of the environment that have changed during the calls of a step.
fn emit_changes(ports: &DriverPorts, step_number: usize, before: &EnvironmentValues) {
    let after = ports.environment.values();
    let parts = [
        (after.variables != before.variables, StatePart::Variables),
        (after.resources != before.resources, StatePart::Resources),
    ];
    let changes: Vec<_> = parts
        .into_iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, part)| part)
        .collect();
    if !changes.is_empty() {
        ports.events.emit(AgentEvent::StateChanged {
            step_number,
            hook: None,
            point: None,
            changes,
            metadata: Object::new(),
            variables: before.changed_variables(&after),
        });
    }
}

/// Leaves a step whose calls need answers of the caller, and ends the execution.
fn leave_open(
    ports: &DriverPorts,
    state: AgentState,
    step: AgentStep,
    ended: Vec<Option<ToolExecution>>,
    open: Vec<OpenUse>,
) -> AgentState {
    let now = ports.now();
    let count = open.len();
    let (mut step, waiting) = suspended(step, ended, open, &ports.tools.specs(), now);
    // The record of the run has the results that are known. The history gets all of them at once.
    if !step.tool_executions.is_empty() {
        step.output_messages.push(tool_message(ports, &step));
    }
    let message = format!("{count} of the step's calls wait for answers of the caller");
    let signal = StopSignal::new(StopReason::AnswerRequired, DRIVER, message).binding();
    state.with_step_left_open(step, waiting, signal.with_figure("open", count), now)
}

/// Adds a stop signal for each tool that asked to end the run.
fn ended_by_tools(ports: &DriverPorts, state: AgentState, executions: &[ToolExecution]) -> AgentState {
    let now = ports.now();
    let ending = executions.iter().filter(|execution| execution.trace.ends_run);
    ending.fold(state, |state, execution| {
        let ToolCall { id, name, .. } = &execution.call;
        let message = format!("the tool {name} ended the run");
        let signal = StopSignal::new(StopReason::StopRequested, name, message);
        state.with_stop_signal(signal.with_figure("call", id.as_str()), now)
    })
}

/// Ends a step with an error. The model is asked to correct it, or the execution fails; the error
/// policy does not apply.
pub(super) fn end_with_fault(ports: &DriverPorts, state: AgentState, mut step: AgentStep, fault: Fault) -> AgentState {
    let now = ports.now();
    let Fault {
        code,
        message,
        advice,
        is_correctable,
    } = fault;
    step.errors.push(validation_error(code, message.clone()));
    let is_correctable = is_correctable && !ports.control.is_last_step(&state);
    let state = state.with_current_step(step, now);
    if is_correctable {
        let advice = ports.message(Role::User, vec![ContentPart::text(advice)]);
        state.with_trace([advice], now).with_retry_wanted(now)
    } else {
        state.with_stop_signal(
            StopSignal::new(StopReason::ErrorForbade, DRIVER, message).binding(),
            now,
        )
    }
}

/// Stores the step in the state, with the signal that ends the execution after it.
pub(super) fn end(
    ports: &DriverPorts,
    state: AgentState,
    step: AgentStep,
    signal: Option<StopSignal>,
    hook_failure: Option<HookFailure>,
) -> AgentState {
    let now = ports.now();
    let state = state.with_current_step(step, now);
    let state = match signal {
        Some(signal) => state.with_stop_signal(signal, now),
        None => state,
    };
    HookFailure::applied(hook_failure, state, now)
}

/// Ends a step that could not begin.
pub(super) fn end_unprepared(
    ports: &DriverPorts,
    state: AgentState,
    mut step: AgentStep,
    unprepared: Unprepared,
) -> AgentState {
    match unprepared {
        Unprepared::Failed(error) => {
            step.errors.push(error);
            end(ports, state, step, None, None)
        }
        Unprepared::Cut(signal) => end(ports, state, step, Some(signal), None),
    }
}

/// Prepares a step. Gives up if the execution is stopped or cancelled, or when its time is spent.
pub(super) async fn prepare(
    ports: &DriverPorts,
    state: &AgentState,
    messages: &Messages,
) -> Result<Prepared, Unprepared> {
    let format = prepare_format(ports, state).await?;
    let request = uncut(ports, state, request(ports, state, messages)).await?;
    Ok(Prepared { format, request })
}

/// Compiles the response format of the state within the same limits as [`prepare`].
pub(super) async fn prepare_format(ports: &DriverPorts, state: &AgentState) -> Result<Arc<CompiledFormat>, Unprepared> {
    let format = async {
        let format = ports.formats.compiled(&ports.tenant, &state.context().response_format);
        let invalid = |error: FormatError| validation_error(RunErrorCode::ResponseFormatInvalid, error.to_string());
        format.await.map_err(invalid)
    };
    uncut(ports, state, format).await
}

async fn uncut<T>(
    ports: &DriverPorts,
    state: &AgentState,
    work: impl Future<Output = Result<T, AgentError>>,
) -> Result<T, Unprepared> {
    tokio::select! {
        biased;
        done = work => done.map_err(Unprepared::Failed),
        cut = ports.control.interrupted(ports.control.time_limit(state)) => Err(Unprepared::Cut(cut)),
    }
}

async fn request(ports: &DriverPorts, state: &AgentState, messages: &Messages) -> Result<ModelRequest, AgentError> {
    let context = state.context();
    let overrides = context.overrides.as_ref();
    let parameters = overrides.map_or_else(
        || Arc::clone(&ports.parameters),
        |overrides| overrides.parameters_over(&ports.parameters),
    );
    let tools = ports.tools.offered(&ports.environment);
    Ok(ModelRequest {
        model: String::new(),
        system: system_prompt(ports, state).await?,
        messages: messages.clone(),
        provider_tools: Arc::clone(&ports.provider_tools),
        tool_choice: tool_choice(state, &parameters, &tools)?,
        tools,
        response_format: context.response_format.clone(),
        max_output_tokens: None,
        parameters,
        trace: None,
    })
}

/// Returns which tools the model may or must call in this step. A call is forced in the first
/// completion only.
fn tool_choice(state: &AgentState, parameters: &ModelParameters, tools: &[ToolSpec]) -> Result<ToolChoice, AgentError> {
    let choice = parameters.tool_choice.clone().unwrap_or_default();
    if let ToolChoice::Tool(name) = &choice
        && !tools.iter().any(|tool| tool.name == *name)
    {
        let message = format!("the model shall call {name:?}, which is no tool of the agent");
        return Err(validation_error(RunErrorCode::UnknownToolChoice, message));
    }
    let has_failed = |step: &AgentStep| !step.has_tool_calls() && !step.errors.is_empty();
    if choice.forces_a_call() && !state.steps().all(has_failed) {
        return Ok(ToolChoice::Auto);
    }
    Ok(choice)
}

/// Returns the rendered prompt, and after it the instructions of the execution.
async fn system_prompt(ports: &DriverPorts, state: &AgentState) -> Result<Arc<str>, AgentError> {
    let prompt = rendered_prompt(ports, state).await?;
    let whole: Arc<str> = match &state.context().instructions {
        Some(instructions) if prompt.is_empty() => Arc::clone(instructions),
        Some(instructions) => format!("{prompt}\n\n{instructions}").into(),
        None => prompt,
    };
    if whole.len() > MAX_PROMPT_BYTES {
        let message = format!("with the instructions of the request, it has more than {MAX_PROMPT_BYTES} bytes");
        return Err(validation_error(RunErrorCode::PromptNotRendered, message));
    }
    Ok(whole)
}

async fn rendered_prompt(ports: &DriverPorts, state: &AgentState) -> Result<Arc<str>, AgentError> {
    let context = state.context();
    if !is_template(&context.system_prompt) {
        return Ok(context.system_prompt.as_str().into());
    }
    let (prompt, metadata) = (context.system_prompt.clone(), context.metadata.clone());
    let variables = ports.environment.variables();
    let rendered = off_thread(&ports.tenant, move || render_prompt(&prompt, &variables, &metadata)).await;
    rendered
        .map(Arc::from)
        .map_err(|error| validation_error(RunErrorCode::PromptNotRendered, error.to_string()))
}

/// Returns the id for a call without an id from the model.
pub(super) fn call_id(step_id: StepId, index: usize) -> String {
    // Providers take ids of at most 40 letters, digits, `-` and `_`.
    format!("call_{}_{index}", step_id.as_uuid().simple())
}

/// Returns whether an error of the step has the code.
pub(super) fn has_error(step: &AgentStep, code: RunErrorCode) -> bool {
    step.errors.iter().any(|error| error.code == code.as_str())
}

/// Returns the value of a final completion, or why it is invalid. A refusal of the model or its
/// provider is final. A completion that is not whole has no value, even if it fits the format, and
/// a retry can't correct it.
async fn judge(
    ports: &DriverPorts,
    state: &AgentState,
    step: &AgentStep,
    format: &Arc<CompiledFormat>,
) -> Result<Option<Value>, Fault> {
    let Some(response) = step.response.as_ref().filter(|response| !response.is_refusal()) else {
        return Ok(None);
    };
    if let Some(cut) = response.finish_reason.cut().filter(|_| !format.is_text()) {
        return Err(Fault {
            code: RunErrorCode::AnswerIncomplete,
            message: format!("the answer is not complete: {cut}"),
            advice: String::new(),
            is_correctable: false,
        });
    }
    let answer = joined_text(&response.content);
    let read = if matches!(**format, CompiledFormat::JsonSchema(_)) {
        let format = Arc::clone(format);
        off_thread(&ports.tenant, move || format.read(&answer)).await
    } else {
        format.read(&answer)
    };
    let violation = match read {
        Ok(value) => return Ok(value),
        Err(violation) => violation,
    };
    let corrected = state
        .steps()
        .filter(|step| has_error(step, RunErrorCode::AnswerInvalid))
        .count();
    Err(Fault {
        code: RunErrorCode::AnswerInvalid,
        message: format!("the answer does not fit its shape: {violation}"),
        advice: format!("Your answer does not fit its shape: {violation}. Give the whole answer again, corrected."),
        is_correctable: corrected < ports.max_corrections as usize,
    })
}

/// Returns the context of the calls of a step; each call adds its id, its key and its span. Returns
/// `None` without an execution.
fn tool_context(ports: &DriverPorts, state: &AgentState) -> Option<ToolContext> {
    Some(ToolContext {
        agent_id: state.agent_id(),
        execution_id: state.execution()?.execution_id,
        step_number: state.step_count() + 1,
        environment: Arc::clone(&ports.environment),
        deferred_tools: ports.tools.deferred(),
        metadata: Arc::default(),
        deadline: ports.control.deadline(state),
        cancellation: ports.control.cancellation().child_token(),
        output: (!ports.hooks.holds_back_deltas()).then(|| {
            Arc::new(ShownOutput {
                events: Arc::clone(&ports.events),
                step_number: state.step_count() + 1,
            }) as _
        }),
        call_id: String::new(),
        idempotency_key: String::new(),
        continuation: None,
        trace: None,
    })
}

/// Emits the output of the calls of a step.
#[derive(Debug)]
struct ShownOutput {
    events: Arc<dyn EventSink>,
    step_number: usize,
}

impl OutputSink for ShownOutput {
    fn show(&self, call_id: &str, text: String) {
        self.events.emit(AgentEvent::ToolCallOutput {
            step_number: self.step_number,
            call_id: call_id.to_owned(),
            text,
        });
    }
}

fn tool_message(ports: &DriverPorts, step: &AgentStep) -> Arc<Message> {
    let results = step
        .tool_executions
        .iter()
        .map(|execution| ContentPart::ToolResult(execution.to_result()));
    Arc::new(ports.message(Role::Tool, results.collect()))
}

/// Makes the error of a request that can't be made, or of a response that can't be used.
pub(super) fn validation_error(code: RunErrorCode, message: String) -> AgentError {
    AgentError {
        kind: ErrorKind::Validation,
        code: code.into(),
        message,
        source_name: None,
    }
}
