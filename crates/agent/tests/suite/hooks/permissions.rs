//! The table of permissions, every point against every field: a permitted change stays, and any
//! other fails with the names of hook and field.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::HookPoint;
use agent::hooks::{HookContext, HookField, HookStack, HookSubject, PERMISSIONS, is_permitted};
use agent::ports::{ModelRequest, ToolDecision, ToolUse};
use agent::state::{
    AgentContext, AgentError, AgentState, ErrorKind, ErrorList, ExecutionStatus, FinishReason, MessageStore,
    ModelResponse, StopReason, StopSignal, ToolExecution, ToolTrace, ToolVerdict,
};
use chrono::TimeDelta;
use serde_json::json;
use test_support::fake_model::{asks_for, says, tool_call, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::model_request::model_request;
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, ToolExecutionId, UuidV7Source};
use values::json::Object;
use values::message::{ContentPart, Message, Role, ToolCall};
use values::model_ref::ResponseFormat;
use values::usage::Usage;
use workspace::environment::EnvironmentValues;

use crate::comparison::without_execution;
use crate::hooks::probe::Probe;
use crate::setup::Setup;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn message(text: &str) -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, text, NOW)
}

fn error(text: &str) -> AgentError {
    AgentError {
        kind: ErrorKind::Unknown,
        code: "c".to_owned(),
        message: text.to_owned(),
        source_name: None,
    }
}

fn call() -> ToolCall {
    tool_call("c1", "t", "{}")
}

/// The context at a point of an execution with two messages.
fn context_at(point: HookPoint) -> HookContext {
    use HookPoint as P;
    let subject = match point {
        P::BeforeExecution => HookSubject::Input(vec![message("input")]),
        P::BeforeStep | P::AfterStep | P::OnStop | P::AfterExecution => HookSubject::State,
        P::BeforeModelRequest => HookSubject::Request(Box::new(ModelRequest {
            system: "s".into(),
            ..model_request(vec![message("asked")])
        })),
        P::AfterModelRequest => HookSubject::Response(Box::new(ModelResponse {
            content: vec![ContentPart::text("answer")],
            provider_fields: None,
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            model: None,
            provider_tool_calls: std::collections::BTreeMap::new(),
            response_id: None,
        })),
        P::BeforeToolUse => HookSubject::ToolUse(ToolUse {
            call: call(),
            decision: ToolDecision::Execute,
            approved: None,
            continuation: None,
        }),
        P::AfterToolUse => HookSubject::ToolExecution(Box::new(ToolExecution {
            id: ToolExecutionId::generate(&UuidV7Source),
            call: call(),
            content: vec![ContentPart::text("result")],
            error: None,
            started_at: NOW,
            completed_at: NOW,
            verdict: ToolVerdict::Executed,
            is_foreign: false,
            trace: ToolTrace::default(),
        })),
        P::OnError => HookSubject::Errors([error("first")].into_iter().collect()),
    };
    let state = AgentState::new(AgentId::generate(&UuidV7Source), NOW)
        .with_metadata(Object::from_iter([("k".to_owned(), json!(1))]))
        .start_execution(ExecutionId::generate(&UuidV7Source), NOW)
        .with_input([message("one"), message("two")], NOW)
        .with_step_started(NOW);
    HookContext::new(point, state, subject)
}

/// Changes the field and nothing else, in each way that there is; empty where the point has no such
/// field.
fn changes(field: HookField, before: &HookContext) -> Vec<HookContext> {
    let of_subject = subjects(field, &before.subject).into_iter().map(|subject| HookContext {
        subject,
        ..before.clone()
    });
    let of_environment = environments(field).into_iter().map(|environment| HookContext {
        environment,
        ..before.clone()
    });
    let elsewhere = (field == HookField::Subject).then(|| elsewhere(before));
    states(field, before)
        .into_iter()
        .chain(of_environment)
        .chain(of_subject)
        .chain(elsewhere)
        .collect()
}

/// Changes the values of an environment that has none.
fn environments(field: HookField) -> Vec<EnvironmentValues> {
    let changes = BTreeMap::from([("changed".to_owned(), json!(1))]);
    match field {
        HookField::Variables => vec![EnvironmentValues::default().with_variables(changes)],
        HookField::Resources => vec![EnvironmentValues::default().with_resources(changes)],
        _ => Vec::new(),
    }
}

/// Changes a field of the state.
fn states(field: HookField, before: &HookContext) -> Vec<HookContext> {
    let of_state = |change: &dyn Fn(AgentState) -> AgentState| {
        let state = change(before.state.clone());
        HookContext {
            state,
            ..before.clone()
        }
    };
    match field {
        HookField::Metadata => vec![of_state(&|state| {
            state.with_metadata(Object::from_iter([("k".to_owned(), json!(2))]))
        })],
        HookField::SystemPrompt => vec![of_state(&|state| state.with_system_prompt("other"))],
        HookField::ResponseFormat => {
            vec![of_state(&|state| {
                state.with_response_format(ResponseFormat::JsonObject)
            })]
        }
        HookField::Messages => vec![
            of_state(&|state| state.with_trace([message("more")], NOW)),
            of_state(&|state| state.with_input([message("more")], NOW)),
        ],
        HookField::Continuation => {
            let signal = || StopSignal::new(StopReason::StopRequested, "probe", "enough");
            vec![
                of_state(&|state| state.with_stop_signal(signal(), NOW)),
                of_state(&|state| state.with_continuation_requested(NOW)),
                of_state(&|state| state.with_retry_wanted(NOW)),
            ]
        }
        HookField::Usage => vec![of_state(&|state| state.with_hook_usage(usage(1, 1), NOW))],
        HookField::History => [vec![message("other"), message("two")], vec![message("one")], Vec::new()]
            .into_iter()
            .map(|messages| of_state(&|state| with_history(state, &messages)))
            .collect(),
        HookField::Identity => vec![
            of_state(&|state| state.with_model(Some("a/b".parse().unwrap()))),
            of_state(&|state| state.with_parent_agent_id(Some(AgentId::generate(&UuidV7Source)))),
        ],
        HookField::Execution => vec![
            of_state(&|state| state.with_error(error("new"), NOW)),
            of_state(&|state| without_execution(&state)),
            of_state(&|state| state.with_execution_ended(NOW)),
        ],
        _ => Vec::new(),
    }
}

/// Changes a field of what the point is about.
fn subjects(field: HookField, subject: &HookSubject) -> Vec<HookSubject> {
    match (field, subject) {
        (HookField::Input, HookSubject::Input(_)) => vec![HookSubject::Input(Vec::new())],
        (HookField::Request, HookSubject::Request(request)) => {
            vec![HookSubject::Request(Box::new(ModelRequest {
                system: "other".into(),
                ..(**request).clone()
            }))]
        }
        (HookField::Response, HookSubject::Response(response)) => vec![
            HookSubject::Response(Box::new(ModelResponse {
                content: Vec::new(),
                ..(**response).clone()
            })),
            HookSubject::Response(Box::new(ModelResponse {
                finish_reason: FinishReason::Length,
                ..(**response).clone()
            })),
        ],
        (HookField::ToolArguments, HookSubject::ToolUse(tool_use)) => {
            let mut changed = tool_use.clone();
            changed.call.arguments.push(' ');
            vec![HookSubject::ToolUse(changed)]
        }
        (HookField::ToolDecision, HookSubject::ToolUse(tool_use)) => {
            let decision = ToolDecision::block("no");
            vec![HookSubject::ToolUse(ToolUse {
                decision,
                ..tool_use.clone()
            })]
        }
        (HookField::ToolResult, HookSubject::ToolExecution(execution)) => vec![
            HookSubject::ToolExecution(Box::new(ToolExecution {
                content: Vec::new(),
                ..(**execution).clone()
            })),
            HookSubject::ToolExecution(Box::new(ToolExecution {
                error: Some(error("new")),
                ..(**execution).clone()
            })),
        ],
        (HookField::Subject, subject) => other_subjects(subject),
        _ => Vec::new(),
    }
}

/// Claims to be at another point.
fn elsewhere(before: &HookContext) -> HookContext {
    let point = HookPoint::ALL
        .iter()
        .copied()
        .find(|point| *point != before.point)
        .unwrap();
    HookContext {
        point,
        ..before.clone()
    }
}

/// Changes what the point is about: its kind, and what is a fact of it.
fn other_subjects(subject: &HookSubject) -> Vec<HookSubject> {
    let facts = match subject {
        HookSubject::State => vec![HookSubject::Input(Vec::new())],
        HookSubject::Input(_) | HookSubject::Request(_) => Vec::new(),
        HookSubject::Errors(_) => vec![HookSubject::Errors(ErrorList::default())],
        HookSubject::Response(response) => vec![HookSubject::Response(Box::new(ModelResponse {
            usage: usage(0, 0),
            provider_tool_calls: std::collections::BTreeMap::new(),
            response_id: Some("r".to_owned()),
            ..(**response).clone()
        }))],
        HookSubject::ToolUse(tool_use) => {
            let mut changed = tool_use.clone();
            changed.call.id.push('2');
            vec![HookSubject::ToolUse(changed)]
        }
        HookSubject::ToolExecution(execution) => vec![HookSubject::ToolExecution(Box::new(ToolExecution {
            verdict: ToolVerdict::Supplied,
            ..(**execution).clone()
        }))],
    };
    let kind = (*subject != HookSubject::State).then_some(HookSubject::State);
    facts.into_iter().chain(kind).collect()
}

/// Returns the state with other messages in the places of its own, and nothing else changed.
fn with_history(state: AgentState, messages: &[Message]) -> AgentState {
    let store = MessageStore::default().with_messages(messages.iter().cloned().map(Arc::new));
    let context = AgentContext {
        store,
        ..state.context().clone()
    };
    let updated_at = state.updated_at();
    with_context(state, context, updated_at)
}

fn with_context(state: AgentState, context: AgentContext, updated_at: Timestamp) -> AgentState {
    let (created_at, count) = (state.created_at(), state.execution_count());
    state.restored(created_at, updated_at, count, context)
}

/// Returns the state with another time of its last change.
fn updated(state: AgentState, updated_at: Timestamp) -> AgentState {
    let context = state.context().clone();
    with_context(state, context, updated_at)
}

#[tokio::test]
async fn every_field_at_every_point_may_change_only_as_the_table_says() {
    let (mut retained, mut refused) = (0, 0);
    for point in HookPoint::ALL.iter().copied() {
        for field in HookField::ALL.iter().copied() {
            let before = context_at(point);
            let changed = changes(field, &before);
            assert!(
                !is_permitted(point, field) || !changed.is_empty(),
                "{point:?} {field:?} is not tried"
            );
            for after in changed {
                let (of_hook, case) = (after.clone(), format!("{point:?} {field:?}"));
                let probe = Probe::changing(point, move |_| of_hook.clone());
                let stack = HookStack::default().with_hook(0, Arc::new(probe));
                let later = NOW + TimeDelta::seconds(7);
                let (context, failure) = stack.call(before.clone(), || later).await;
                let expected = if is_permitted(point, field) { &after } else { &before };
                assert_eq!(context.point, point, "{case}");
                let has_changed = expected.state != before.state;
                let at = if has_changed { later } else { NOW };
                assert_eq!(context.state, updated(expected.state.clone(), at), "{case}");
                assert_eq!(context.subject, expected.subject, "{case}");
                let message = failure.map(|failure| failure.to_string());
                if is_permitted(point, field) {
                    retained += 1;
                    assert_eq!(message, None, "{case}");
                } else {
                    refused += 1;
                    let at = point.as_str();
                    let words = format!("the hook probe failed: it changed {field}, which no hook may do at {at}");
                    assert_eq!(message, Some(words), "{case}");
                }
            }
        }
    }
    assert!(retained > 40 && refused > 80, "{retained} {refused}");
}

#[test]
fn the_table_names_every_point_once_and_nothing_that_belongs_to_the_loop() {
    let points: Vec<_> = PERMISSIONS.iter().map(|(point, _)| *point).collect();
    assert_eq!(points, HookPoint::ALL);
    for field in [
        HookField::History,
        HookField::Identity,
        HookField::Execution,
        HookField::Subject,
    ] {
        assert!(
            HookPoint::ALL.iter().copied().all(|point| !is_permitted(point, field)),
            "{field}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_change_at_any_point_fails_the_run_and_is_undone() {
    for point in HookPoint::ALL.iter().copied() {
        let setup = Setup::new([asks_for(&[("c1", "echo", "{}"), ("c2", "unknown", "{}")]), says("done")])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_hook(Probe::changing(point, |context| HookContext {
                state: context.state.with_model(Some("a/b".parse().unwrap())),
                ..context
            }));
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{point:?}");
        assert_eq!(state.model(), None, "{point:?}");
        let error = state.errors().last().cloned().unwrap();
        let words = format!(
            "the hook probe failed: it changed the agent's identity, which no hook may do at {}",
            point.as_str()
        );
        assert_eq!((error.code.as_str(), error.message), ("hook_failed", words));
        assert_eq!(error.source_name.as_deref(), Some("probe"));
    }
}
