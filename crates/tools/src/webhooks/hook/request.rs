//! The message of a webhook at each point.
//!
//! `docs/webhook-hook.md` documents the form, and a test compares it with the code. The message
//! contains histories only if the agent asks for them.

use std::collections::BTreeMap;

use serde::Serialize;

use agent::HookPoint;
use agent::hooks::{HookContext, HookSubject};
use agent::ports::{ModelRequest, ToolDecision};
use agent::state::{
    AgentError, AgentState, AgentStep, AgentStepType, ErrorList, FinishReason, Messages, ModelResponse, StopReason,
    StopSignal, ToolExecution, ToolVerdict,
};
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, StepId, ToolExecutionId};
use values::json::{Object, Value};
use values::message::{ContentPart, Message, ToolCall};
use values::model_parameters::ModelParameters;
use values::model_ref::ResponseFormat;
use values::tenant::TenantId;
use values::usage::Usage;

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Timestamp,
    tenant: &'a TenantId,
    hook: &'a str,
    point: HookPoint,
    agent_id: AgentId,
    parent_agent_id: Option<AgentId>,
    execution_id: Option<ExecutionId>,
    execution_count: u64,
    step_number: Option<usize>,
    metadata: &'a Object,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    variables: &'a BTreeMap<String, Value>,
    #[serde(flatten)]
    subject: Subject<'a>,
}

/// The subject of the hook point.
#[derive(Serialize)]
#[serde(untagged)]
enum Subject<'a> {
    Step {},
    Input {
        input: &'a [Message],
    },
    Request {
        request: Request<'a>,
    },
    Response {
        response: Response<'a>,
    },
    ToolUse {
        tool_call: &'a ToolCall,
        decision: Option<Decision<'a>>,
    },
    ToolExecution {
        tool_execution: Execution<'a>,
    },
    Errors {
        errors: &'a ErrorList,
    },
    StepEnd {
        step: Option<Step<'a>>,
        stop_signals: Option<&'a [StopSignal]>,
    },
    End {
        stop_reason: Option<StopReason>,
        stop_signals: Option<&'a [StopSignal]>,
        steps: usize,
        usage: Usage,
        errors: ErrorList,
        output: Vec<&'a Message>,
    },
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    system: &'a str,
    message_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<&'a Messages>,
    tools: Vec<&'a str>,
    response_format: &'a ResponseFormat,
    max_output_tokens: Option<u64>,
    parameters: &'a ModelParameters,
}

#[derive(Serialize)]
struct Response<'a> {
    content: &'a [ContentPart],
    finish_reason: &'a FinishReason,
    usage: Usage,
    model: Option<&'a str>,
    #[serde(rename = "response_id")]
    id: Option<&'a str>,
}

/// The decision of earlier hooks about a call.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Decision<'a> {
    Block(&'a str),
    Supply(&'a [ContentPart]),
}

#[derive(Serialize)]
struct Execution<'a> {
    id: ToolExecutionId,
    call: &'a ToolCall,
    content: &'a [ContentPart],
    error: Option<&'a AgentError>,
    verdict: ToolVerdict,
    started_at: Timestamp,
    completed_at: Timestamp,
}

#[derive(Serialize)]
struct Step<'a> {
    id: StepId,
    #[serde(rename = "type")]
    kind: AgentStepType,
    response: Option<Response<'a>>,
    tool_executions: Vec<Execution<'a>>,
    errors: &'a ErrorList,
    usage: Usage,
}

/// Returns the message, which serializes as its JSON.
pub(super) fn message<'a>(
    hook: &'a str,
    tenant: &'a TenantId,
    context: &'a HookContext,
    include_messages: bool,
    now: Timestamp,
) -> impl Serialize + use<'a> {
    let state = &context.state;
    Body {
        kind: format!("hook.{}", context.point.as_str()),
        timestamp: now,
        tenant,
        hook,
        point: context.point,
        agent_id: state.agent_id(),
        parent_agent_id: state.parent_agent_id(),
        execution_id: state.execution().map(|execution| execution.execution_id),
        execution_count: state.execution_count(),
        step_number: is_in_step(context.point).then(|| state.step_count() + 1),
        metadata: state.metadata(),
        variables: &context.environment.variables,
        subject: subject(context, include_messages),
    }
}

fn is_in_step(point: HookPoint) -> bool {
    use HookPoint as P;
    !matches!(point, P::BeforeExecution | P::OnStop | P::AfterExecution)
}

fn subject(context: &HookContext, include_messages: bool) -> Subject<'_> {
    match &context.subject {
        HookSubject::State => state_subject(context.point, &context.state),
        HookSubject::Input(input) => Subject::Input { input },
        HookSubject::Request(request) => Subject::Request {
            request: shown_request(request, include_messages),
        },
        HookSubject::Response(response) => Subject::Response {
            response: shown_response(response),
        },
        HookSubject::ToolUse(tool_use) => Subject::ToolUse {
            tool_call: &tool_use.call,
            decision: match &tool_use.decision {
                ToolDecision::Execute => None,
                ToolDecision::Block { reason, .. } => Some(Decision::Block(reason)),
                ToolDecision::Supply { content, .. } => Some(Decision::Supply(content)),
            },
        },
        HookSubject::ToolExecution(execution) => Subject::ToolExecution {
            tool_execution: shown_execution(execution),
        },
        HookSubject::Errors(errors) => Subject::Errors { errors },
    }
}

fn state_subject(point: HookPoint, state: &AgentState) -> Subject<'_> {
    let stop_signals = state.execution().map(|execution| &*execution.continuation.stop_signals);
    match point {
        HookPoint::AfterStep => Subject::StepEnd {
            step: state.current_step().map(shown_step),
            stop_signals,
        },
        HookPoint::OnStop | HookPoint::AfterExecution => Subject::End {
            stop_reason: state.stop_reason(),
            stop_signals,
            steps: state.step_count(),
            usage: state.usage(),
            errors: state.errors(),
            output: state.current_response().iter().map(AsRef::as_ref).collect(),
        },
        _ => Subject::Step {},
    }
}

fn shown_request(request: &ModelRequest, include_messages: bool) -> Request<'_> {
    Request {
        model: &request.model,
        system: &request.system,
        message_count: request.messages.len(),
        messages: include_messages.then_some(&request.messages),
        tools: request.tools.iter().map(|tool| tool.name.as_str()).collect(),
        response_format: &request.response_format,
        max_output_tokens: request.max_output_tokens,
        parameters: &request.parameters,
    }
}

fn shown_response(response: &ModelResponse) -> Response<'_> {
    Response {
        content: &response.content,
        finish_reason: &response.finish_reason,
        usage: response.usage,
        model: response.model.as_deref(),
        id: response.response_id.as_deref(),
    }
}

fn shown_execution(execution: &ToolExecution) -> Execution<'_> {
    Execution {
        id: execution.id,
        call: &execution.call,
        content: &execution.content,
        error: execution.error.as_ref(),
        verdict: execution.verdict,
        started_at: execution.started_at,
        completed_at: execution.completed_at,
    }
}

fn shown_step(step: &AgentStep) -> Step<'_> {
    Step {
        id: step.id,
        kind: step.step_type(),
        response: step.response.as_ref().map(shown_response),
        tool_executions: step.tool_executions.iter().map(shown_execution).collect(),
        errors: &step.errors,
        usage: step.usage(),
    }
}
