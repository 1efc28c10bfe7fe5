//! Drafts of sessions with their messages, and the records of their runs, to store.

use std::sync::Arc;

use agent::definition::Durability;
use agent::record::{Creator, RunMode, RunRecord, RunStatus, RunSummary, StepRecord, TokenCreator};
use agent::state::{AgentStepType, ErrorList, FinishReason, ModelRequestTrace, StopReason};
use serde_json::json;
use store::audit::{Actor, Requester};
use store::runs::RunEnd;
use store::sessions::{Commit, ConflictPolicy};
use values::clock::{Clock as _, SystemClock, Timestamp};
use values::ids::{AgentId, BranchId, MessageId, RunId, SessionId, StepId, UuidV7Source};
use values::json::{Object, Unread};
use values::message::{ContentPart, Coverage, Message, MessageTags, Role, Section, ToolCall, ToolResult};
use values::session::{Bundle, BundleDraft, ContextState, EnvironmentState, StoredContext, ToolPins};
use values::tenant::TenantId;
use values::usage::{Cost, Usage};

pub fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

pub fn now() -> Timestamp {
    SystemClock.now()
}

/// Somebody who asks for an administrative act now.
pub fn requester() -> Requester {
    requester_at(now())
}

/// Somebody who asks for an administrative act at a time.
pub fn requester_at(at: Timestamp) -> Requester {
    Requester {
        actor: Actor::Anonymous,
        at,
        request_id: None,
        address: None,
    }
}

pub fn session_id() -> SessionId {
    SessionId::generate(&UuidV7Source)
}

pub fn run_id() -> RunId {
    RunId::generate(&UuidV7Source)
}

pub fn object(value: serde_json::Value) -> Object {
    serde_json::from_value(value).unwrap()
}

pub fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::text(
        MessageId::generate(&UuidV7Source),
        Role::User,
        text,
        now(),
    ))
}

/// A summary that stands for the messages from one index to before the other.
pub fn summary(text: &str, from: u64, to: u64) -> Arc<Message> {
    let tags = MessageTags {
        section: Section::new(Section::SUMMARY),
        covers: Some(Coverage { from, to }),
        ..MessageTags::default()
    };
    Arc::new((*user(text)).clone().with_tags(tags))
}

pub fn call(call_id: &str) -> Arc<Message> {
    let call = ContentPart::ToolCall(ToolCall {
        id: call_id.to_owned(),
        name: "calculator".to_owned(),
        arguments: r#"{"expression": "1+1"}"#.to_owned(),
        signature: None,
    });
    Arc::new(Message::new(
        MessageId::generate(&UuidV7Source),
        Role::Assistant,
        vec![call],
        now(),
    ))
}

pub fn result(call_id: &str) -> Arc<Message> {
    let result = ContentPart::ToolResult(ToolResult {
        call_id: call_id.to_owned(),
        name: "calculator".to_owned(),
        content: vec![ContentPart::text("2")],
        is_error: false,
    });
    Arc::new(Message::new(
        MessageId::generate(&UuidV7Source),
        Role::Tool,
        vec![result],
        now(),
    ))
}

/// Makes a commit of messages, with the record of its run.
pub fn commit_of(tenant: &TenantId, parent: Option<&Arc<Bundle>>, messages: Vec<Arc<Message>>) -> Commit {
    let draft = draft(parent, messages);
    Commit {
        tenant: tenant.clone(),
        run: Some(run_of(&draft)),
        thread: None,
        draft,
        conflict: ConflictPolicy::Fork,
        children: Vec::new(),
        environment_from: None,
    }
}

/// A draft that adds messages to its parent's and changes nothing else.
pub fn draft(parent: Option<&Arc<Bundle>>, messages: Vec<Arc<Message>>) -> BundleDraft {
    let context = parent.map_or_else(new_context, |parent| ContextState {
        execution_count: parent.head.execution_count + 1,
        updated_at: now(),
        ..parent.context_state()
    });
    BundleDraft {
        session_id: session_id(),
        parent: parent.cloned(),
        merged_session_id: None,
        environment_session_id: None,
        run_id: None,
        run_status: None,
        subagent_of: None,
        agent: "demo".to_owned(),
        agent_version: Some(values::session::hash_definition(b"demo")),
        environment: parent.map_or_else(|| Arc::new(new_environment()), |parent| Arc::clone(&parent.environment)),
        context,
        history: parent
            .map(|parent| parent.history.clone())
            .unwrap_or_default()
            .with_messages(messages),
        new_branch_id: BranchId::generate(&UuidV7Source),
    }
    .with_run()
}

trait WithRun {
    fn with_run(self) -> Self;
}

impl WithRun for BundleDraft {
    fn with_run(self) -> Self {
        Self {
            run_id: Some(run_id()),
            ..self
        }
    }
}

fn new_context() -> ContextState {
    ContextState {
        stored: StoredContext {
            agent_id: AgentId::generate(&UuidV7Source),
            parent_agent_id: None,
            created_at: now(),
            model: Some("scripted/demo".parse().unwrap()),
            system_prompt: "Answer in one sentence. \u{1f980}".to_owned(),
            response_format: serde_json::from_value(json!({"type": "text"})).unwrap(),
            overrides: None,
            waiting: None,
            remembered_approvals: Vec::new(),
            tool_pins: ToolPins::default(),
            other: object(json!({"kept": {"nul": "a\u{0}b"}})),
            unread: Unread::default(),
        },
        // Numbers that a JSON column would write in another way.
        metadata: object(json!({"topic": "store", "score": 1e16, "tiny": 0.1, "minus": -0.0})),
        execution_count: 1,
        updated_at: now(),
    }
}

fn new_environment() -> EnvironmentState {
    serde_json::from_value(json!({
        "variables": {"city": "Zürich", "limits": [1, 2.5, null]},
        "resources": {"workspace": {"nul": "\u{0}"}},
        "kept": true,
    }))
    .unwrap()
}

/// The end of the run that publishes a draft.
pub fn run_of(draft: &BundleDraft) -> RunEnd {
    let mut record = run_record(draft.run_id.unwrap(), draft.session_id, RunStatus::Completed);
    record.summary.base_session_id = draft.parent.as_ref().map(|parent| parent.head.session_id);
    record.output = draft.new_messages().cloned().collect();
    run_end(record, vec![step(1)])
}

/// The end of a run that was never in the queue and sends no webhooks.
pub fn run_end(record: RunRecord, steps: Vec<StepRecord>) -> RunEnd {
    RunEnd {
        record,
        steps,
        lease: None,
        events: Vec::new(),
        applied: Vec::new(),
        deliveries: Vec::new(),
        is_metered: false,
    }
}

pub fn run_record(run_id: RunId, session_id: SessionId, status: RunStatus) -> RunRecord {
    RunRecord {
        summary: RunSummary {
            run_id,
            session_id,
            publishes: true,
            base_session_id: None,
            agent: "demo".to_owned(),
            agent_version: None,
            model: "scripted/demo".parse().unwrap(),
            answered_by: Some("other/model".parse().unwrap()),
            mode: RunMode::Sync,
            durability: Durability::Session,
            thread: None,
            thread_moved: None,
            answer_run_id: None,
            attempts: 1,
            status,
            stop_reason: Some(StopReason::Completed),
            usage: usage(),
            step_count: 1,
            event_count: 12,
            error: None,
            metadata: object(json!({"ticket": 7})),
            created_by: Some(Creator::Token(TokenCreator {
                issuer: "https://login.example.org".to_owned(),
                sub: "user-17".to_owned(),
                azp: Some("gateway".to_owned()),
                act: Some(object(json!({"sub": "assistant"}))),
            })),
            created_at: now(),
            started_at: Some(now()),
            completed_at: Some(now()),
        },
        input: Arc::default(),
        output: vec![user("output \u{0}")],
        value: Some(json!({"celsius": 21.5, "nul": "\u{0}"})),
        finish_reason: Some(FinishReason::Length),
        stop_signal: None,
        open_calls: Vec::new(),
        echo: None,
        is_hidden: false,
    }
}

pub fn step(step_number: u64) -> StepRecord {
    StepRecord {
        step_number,
        step_id: StepId::generate(&UuidV7Source),
        step_type: AgentStepType::FinalResponse,
        finish_reason: Some(FinishReason::Other("novel".to_owned())),
        answered_by: Some("other/model".parse().unwrap()),
        model: Some("demo-2".to_owned()),
        usage: usage(),
        provider_tool_calls: std::collections::BTreeMap::new(),
        started_at: now(),
        completed_at: now(),
        duration_ms: 12,
        model_requests: vec![model_request()],
        tool_executions: Vec::new(),
        errors: ErrorList::default(),
        left_out: Vec::new(),
        messages: Vec::new(),
    }
}

fn model_request() -> ModelRequestTrace {
    ModelRequestTrace {
        model: "other/model".parse().unwrap(),
        started_at: now(),
        first_token_at: Some(now()),
        ended_at: now(),
        attempts: 2,
        error: None,
    }
}

fn usage() -> Usage {
    Usage {
        input_tokens: 120,
        output_tokens: 30,
        cache_read_tokens: 7,
        cache_write_tokens: 8,
        reasoning_tokens: 9,
        total_tokens: 150,
        cost: Cost::from_dollars(0.000_123),
        cost_known_part: None,
    }
}
