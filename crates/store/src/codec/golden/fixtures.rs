//! The values in the golden files. They never change. A new field has its default value here, or a
//! new fixture sets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;

use agent::AgentEvent;
use agent::definition::AgentDefinition;
use agent::journal::JournalEntry;
use agent::ports::{Approved, ToolDecision, ToolUse};
use agent::record::{RunEvent, RunEventPayload, RunRecord, StepRecord};
use agent::state::{
    AgentError, AgentState, AgentStep, ErrorKind, ExecutionStatus, FinishReason, Messages, ModelResponse,
    StateAddition, StepExecution, StopReason, StopSignal, SubagentExecution, ToolExecution, ToolTrace, ToolVerdict,
};
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, SessionId, StepId, ToolExecutionId};
use values::json::{Object, RawJson, Unread, Value};
use values::message::{
    Citation, ContentPart, Coverage, DocumentPart, ImagePart, MediaSource, Message, MessageTags, OpaquePart,
    ProviderFields, ReasoningPart, Role, Section, TextPart, ToolCall, ToolResult,
};
use values::model_ref::ResponseFormat;
use values::session::{
    EnvironmentState, ShellState, StoredContext, ToolPins, WorkspaceState, hash_definition, hash_environment,
};
use values::usage::{Cost, Usage};

pub(super) fn id(n: u128) -> Uuid {
    Uuid::from_u128(0x0190_d9b4_5a00_7000_8000_0000_0000_0000 + n)
}

pub(super) fn at(millis: i64) -> Timestamp {
    "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + TimeDelta::milliseconds(millis)
}

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn message(n: u128, role: Role, content: Vec<ContentPart>) -> Message {
    Message::new(MessageId::from_uuid(id(n)), role, content, at(0))
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: r#"{"expression": "1 + 1"}"#.to_owned(),
        signature: Some("c2ln".to_owned()),
    }
}

fn media() -> MediaSource {
    MediaSource::Base64 {
        media_type: "application/pdf".to_owned(),
        data: "JVBERg==".to_owned(),
    }
}

/// Every kind of part, every tag and every field of a message.
pub(super) fn messages() -> Vec<Arc<Message>> {
    let asked = Message {
        name: Some("ada".to_owned()),
        metadata: object(json!({"channel": "web", "n": 1})),
        ..message(
            1,
            Role::User,
            vec![ContentPart::text("What is 1 + 1, and what is in the file?")],
        )
    };
    let image = ImagePart {
        source: MediaSource::Url {
            url: "https://example.org/a.png".to_owned(),
        },
        detail: Some("low".to_owned()),
    };
    let document = DocumentPart {
        source: media(),
        name: Some("a.pdf".to_owned()),
    };
    let tags = MessageTags {
        step_id: Some(StepId::from_uuid(id(20))),
        execution_id: Some(ExecutionId::from_uuid(id(21))),
        agent_id: Some(AgentId::from_uuid(id(22))),
        is_trace: true,
        ..MessageTags::default()
    };
    let reasoning = ReasoningPart {
        text: "First the sum.".to_owned(),
        signature: Some("c2ln".to_owned()),
        encrypted: Some("ZW5j".to_owned()),
        id: Some("r1".to_owned()),
    };
    let asks = vec![
        ContentPart::Reasoning(reasoning),
        ContentPart::ToolCall(call("c1", "calculator")),
    ];
    let result = ToolResult {
        call_id: "c1".to_owned(),
        name: "calculator".to_owned(),
        content: vec![
            ContentPart::text("2"),
            ContentPart::Image(image),
            ContentPart::Document(document),
        ],
        is_error: true,
    };
    let summary = message(5, Role::User, vec![ContentPart::text("They added numbers.")]).with_tags(MessageTags {
        section: Section::new(Section::SUMMARY),
        covers: Some(Coverage { from: 0, to: 3 }),
        ..MessageTags::default()
    });
    let partial = message(6, Role::Assistant, vec![ContentPart::text("It is")]).with_tags(MessageTags {
        is_partial: true,
        context_tokens: Some(120),
        ..tags.clone()
    });
    let messages = [
        asked,
        message(2, Role::Assistant, asks).with_tags(tags.clone()),
        message(3, Role::Tool, vec![ContentPart::ToolResult(result)]).with_tags(tags),
        said(),
        summary,
        partial,
        message(7, Role::System, vec![ContentPart::text("Be brief.")]),
    ];
    messages.into_iter().map(Arc::new).collect()
}

fn said() -> Message {
    let cited = TextPart {
        text: "It is 2.".to_owned(),
        citations: vec![Citation(RawJson::new(r#"{"page": 1.0}"#))],
        signature: Some("c2ln".to_owned()),
    };
    let opaque = OpaquePart {
        provider: "mistral".to_owned(),
        raw: RawJson::new(r#"{"b": 1e2, "a": 0}"#),
    };
    let refusal = ContentPart::Refusal {
        text: "Not that.".to_owned(),
    };
    Message {
        provider_fields: Some(ProviderFields {
            fields: vec![("reasoning_details".to_owned(), RawJson::new("[1]"))],
            ..ProviderFields::owner("openrouter")
        }),
        ..message(
            4,
            Role::Assistant,
            vec![ContentPart::Text(cited), refusal, ContentPart::Opaque(opaque)],
        )
    }
}

pub(super) fn context() -> StoredContext {
    StoredContext {
        agent_id: AgentId::from_uuid(id(22)),
        parent_agent_id: Some(AgentId::from_uuid(id(23))),
        created_at: at(0),
        model: Some("openai/gpt-5-mini".parse().unwrap()),
        system_prompt: "You add numbers.".to_owned(),
        response_format: response_format(),
        overrides: None,
        waiting: None,
        remembered_approvals: Vec::new(),
        tool_pins: ToolPins::default(),
        other: object(json!({"mood": "fine"})),
        unread: Unread::default(),
    }
}

/// A context that overrides everything in its agent's definition.
pub(super) fn overriding_context() -> StoredContext {
    let overrides = json!({
        "parameters": {
            "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 100, "reasoning_effort": "low", "stop": ["END"],
            "tool_choice": "auto",
        },
        "system_prompt": "You subtract numbers.", "tools": ["calculator"],
    });
    StoredContext {
        overrides: serde_json::from_value(overrides).unwrap(),
        ..context()
    }
}

fn response_format() -> ResponseFormat {
    ResponseFormat::JsonSchema {
        name: "sum".to_owned(),
        schema: json!({"type": "object", "properties": {"sum": {"type": "number"}}}),
        strict: true,
    }
}

pub(super) fn environment() -> EnvironmentState {
    serde_json::from_value(json!({
        "variables": {"city": "Bergen", "limit": 1.5, "list": [1, null]},
        "resources": {"workspace": {"files": {}}},
        "mood": "fine",
    }))
    .unwrap()
}

/// An environment with files and a shell.
pub(super) fn environment_with_files() -> EnvironmentState {
    EnvironmentState {
        workspace: Some(WorkspaceState {
            tree: hash_environment(b"tree"),
            other: Object::new(),
        }),
        shell: Some(ShellState {
            cwd: "src".to_owned(),
            variables: [("LANG".to_owned(), "C".to_owned())].into(),
            other: Object::new(),
        }),
        ..environment()
    }
}

pub(super) fn definition() -> AgentDefinition {
    serde_json::from_value(json!({
        "name": "adder", "description": "Adds.", "system_prompt": "You add {{ variables.what }}.", "driver": "tool_calling",
        "models": ["openai/gpt-5-mini", "demo/chat"], "tools": ["calculator"], "parallel_tool_calls": false,
        "subagents": [{"agent": "helper", "budget": {"max_steps": 2}}], "max_depth": 2, "max_corrections": 1,
        "budget": {"max_steps": 5, "max_tokens": 1000, "max_seconds": 60.5, "max_cost": 0.25},
        "response_format": {"type": "json_object"}, "error_policy": "retry_all", "metadata": {"team": "a"},
    }))
    .unwrap()
}

fn usage(n: u64) -> Usage {
    Usage {
        input_tokens: n,
        output_tokens: 2,
        cache_read_tokens: 3,
        cache_write_tokens: 4,
        reasoning_tokens: 1,
        total_tokens: n + 2,
        cost: Cost::from_dollars(0.0021),
        cost_known_part: None,
    }
}

fn error(kind: ErrorKind, code: &str) -> AgentError {
    AgentError {
        kind,
        code: code.to_owned(),
        message: "it did not work".to_owned(),
        source_name: Some("calculator".to_owned()),
    }
}

fn execution(
    n: u128,
    call: ToolCall,
    error: Option<AgentError>,
    verdict: ToolVerdict,
    trace: ToolTrace,
) -> ToolExecution {
    ToolExecution {
        id: ToolExecutionId::from_uuid(id(n)),
        call,
        content: vec![ContentPart::text("2")],
        error,
        started_at: at(100),
        completed_at: at(250),
        verdict,
        is_foreign: false,
        trace,
    }
}

fn response(finish_reason: FinishReason) -> ModelResponse {
    ModelResponse {
        content: vec![ContentPart::text("Let me add.")],
        provider_fields: None,
        finish_reason,
        usage: usage(10),
        provider_tool_calls: BTreeMap::new(),
        model: Some("gpt-5-mini-2026".to_owned()),
        response_id: Some("resp_1".to_owned()),
    }
}

/// A step with four tool calls: one to another agent, one that is blocked, one with a supplied
/// result, and one to an unknown tool.
fn tool_step(n: u128) -> AgentStep {
    let subagent = SubagentExecution {
        agent: "helper".to_owned(),
        agent_id: AgentId::from_uuid(id(30)),
        session_id: SessionId::from_uuid(id(31)),
        execution_id: ExecutionId::from_uuid(id(32)),
        status: ExecutionStatus::Stopped,
        stop_reason: Some(StopReason::StepsLimitReached),
        steps: vec![Arc::new(StepExecution {
            step: final_step(33),
            continuation: serde_json::from_value(json!({})).unwrap(),
            started_at: at(110),
            completed_at: at(120),
            unread: Unread::default(),
        })],
    };
    let trace = ToolTrace {
        usage: usage(7),
        subagent: Some(Arc::new(subagent)),
        ..ToolTrace::default()
    };
    let none = ToolTrace::default;
    let unknown = Some(error(ErrorKind::Tool, "unknown_tool"));
    let mut step = AgentStep::new(StepId::from_uuid(id(n)), Messages::default());
    step.output_messages = messages().into_iter().skip(1).take(2).collect();
    step.response = Some(response(FinishReason::ToolCalls));
    let failed = error(ErrorKind::RateLimit, "model_overloaded");
    let requests = json!([
        {"model": "openai/gpt-5-mini", "started_at": at(30), "ended_at": at(50), "attempts": 3, "error": failed},
        {"model": "demo/chat", "started_at": at(60), "first_token_at": at(70), "ended_at": at(90), "attempts": 1},
    ]);
    step.model_requests = serde_json::from_value(requests).unwrap();
    step.tool_executions = vec![
        execution(40, call("c1", "helper"), None, ToolVerdict::Executed, trace),
        execution(41, call("c2", "calculator"), None, ToolVerdict::Blocked, none()),
        execution(42, call("c3", "calculator"), None, ToolVerdict::Supplied, none()),
        execution(43, call("c4", "teleport"), unknown, ToolVerdict::Executed, none()),
    ];
    step
}

fn final_step(n: u128) -> AgentStep {
    let mut step = AgentStep::new(StepId::from_uuid(id(n)), Messages::default());
    step.output_messages = vec![Arc::new(message(n + 1, Role::Assistant, vec![ContentPart::text("2")]))];
    step.response = Some(response(FinishReason::Other("tired".to_owned())));
    step.value = Some(json!({"sum": 2}));
    step.errors.push(error(ErrorKind::RateLimit, "model_overloaded"));
    step
}

/// A state between executions.
pub(super) fn idle_state() -> AgentState {
    AgentState::new(AgentId::from_uuid(id(22)), at(0))
        .with_parent_agent_id(Some(AgentId::from_uuid(id(23))))
        .with_model(Some("openai/gpt-5-mini".parse().unwrap()))
        .with_system_prompt("You add numbers.")
        .with_response_format(response_format())
        .with_metadata(object(json!({"team": "a"})))
        .with_input(messages().into_iter().take(1).map(Arc::unwrap_or_clone), at(1))
}

/// The state at the start of an execution and after each of its two steps.
pub(super) fn states() -> [AgentState; 3] {
    let begun = idle_state()
        .start_execution(ExecutionId::from_uuid(id(21)), at(10))
        .with_input([message(50, Role::User, vec![ContentPart::text("And 2 + 2?")])], at(10));
    let signal = StopSignal::new(StopReason::StopRequested, "guard", "enough")
        .with_figure("max", 3)
        .binding();
    let first = begun
        .clone()
        .with_step_started(at(20))
        .with_step_granted(at(20))
        .with_current_step(tool_step(20), at(300))
        .with_stop_signal(
            StopSignal::new(StopReason::TokenLimitReached, "budget", "spent"),
            at(300),
        )
        .with_continuation_requested(at(300))
        .with_step_recorded(at(301));
    let second = first
        .clone()
        .with_metadata(object(json!({"seen": true})))
        .with_step_started(at(310))
        .with_step_granted(at(310))
        .with_current_step(final_step(60), at(400))
        .with_error(error(ErrorKind::Hook, "hook_failed"), at(400))
        .with_hook_usage(usage(5), at(400))
        .with_retry_wanted(at(400))
        .with_stop_signal(signal, at(400))
        .with_step_recorded(at(401));
    [begun, first, second]
}

pub(super) fn addition() -> StateAddition {
    let [_, first, second] = states();
    second.since(&first)
}

/// An entry of each kind.
pub(super) fn journal() -> [JournalEntry; 9] {
    let step = tool_step(20);
    let ended = Box::new(step.tool_executions[0].clone());
    [
        JournalEntry::SubagentBegun {
            session_id: SessionId::from_uuid(id(31)),
            agent_id: AgentId::from_uuid(id(30)),
            agent_version: hash_definition(b"helper"),
            environment: None,
        },
        JournalEntry::Reached(addition()),
        JournalEntry::CallsRequested {
            step: Box::new(step),
            started_at: at(20),
            addition: addition(),
        },
        JournalEntry::CallDecided {
            index: 1,
            tool_use: ToolUse {
                decision: ToolDecision::Supply {
                    content: vec![ContentPart::text("2")],
                    is_error: false,
                },
                ..ToolUse::undecided(call("c2", "calculator"))
            },
            addition: addition(),
        },
        JournalEntry::CallBegun { index: 0 },
        JournalEntry::CallEnded {
            index: 0,
            execution: ended,
            addition: addition(),
        },
        JournalEntry::SubagentBegun {
            session_id: SessionId::from_uuid(id(31)),
            agent_id: AgentId::from_uuid(id(30)),
            agent_version: hash_definition(b"helper"),
            environment: Some(Box::new(environment())),
        },
        JournalEntry::EnvironmentChanged {
            revision: 2,
            state: Box::new(environment()),
        },
        JournalEntry::CallDecided {
            index: 1,
            tool_use: ToolUse {
                approved: Some(Approved::Edited {
                    arguments: r#"{"expression": "2 + 2"}"#.to_owned(),
                }),
                ..ToolUse::undecided(call("c2", "calculator"))
            },
            addition: addition(),
        },
    ]
}

/// The first event of a run, and one with every kind of part.
pub(super) fn events() -> Vec<Arc<RunEvent>> {
    let content = messages().iter().flat_map(|message| message.content.clone()).collect();
    let answered = AgentEvent::ToolCallCompleted {
        step_number: 1,
        call_id: "c1".to_owned(),
        name: "calculator".to_owned(),
        arguments: "{}".to_owned(),
        content,
        is_error: false,
        verdict: ToolVerdict::Blocked,
        is_foreign: false,
        duration_ms: 12,
    };
    let payloads = [
        RunEventPayload::Started(Box::new(record().summary)),
        RunEventPayload::Agent(answered),
    ];
    let event = |(sequence, payload)| {
        Arc::new(RunEvent {
            sequence,
            run_id: record().summary.run_id,
            time: at(1),
            payload,
        })
    };
    (1..).zip(payloads).map(event).collect()
}

/// A run whose output has one message and a value.
pub(super) fn record() -> RunRecord {
    let record = json!({
        "run_id": id(70), "session_id": id(71), "base_session_id": null, "agent": "adder", "agent_version": null,
        "model": "demo/chat", "mode": "sync", "status": "completed", "stop_reason": null, "usage": {}, "step_count": 1,
        "error": null, "metadata": {}, "created_at": at(0), "started_at": null, "completed_at": null, "output": [],
    });
    RunRecord {
        output: messages()[3..4].to_vec(),
        value: Some(json!({"sum": 2})),
        ..serde_json::from_value(record).unwrap()
    }
}

pub(super) fn steps() -> Vec<StepRecord> {
    let [.., state] = states();
    let steps = state.execution().unwrap().step_executions.iter();
    (1..)
        .zip(steps)
        .map(|(number, step)| StepRecord::new(number, step))
        .collect()
}
