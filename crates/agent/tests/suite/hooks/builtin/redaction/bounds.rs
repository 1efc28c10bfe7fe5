//! `redaction` beside other work: the turns of other tasks, and the end of the run.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use agent::definition::HookConfig;
use agent::hooks::{HookContext, HookRegistry, HookStack, HookSubject};
use agent::ports::{ModelRequest, ToolDecision, ToolUse};
use agent::state::{
    AgentError, AgentState, ErrorKind, ExecutionBudget, FinishReason, ModelResponse, StopReason, ToolExecution,
    ToolTrace, ToolVerdict,
};
use agent::{ExecutionControl, HookPoint, builtin_hooks};
use serde_json::{Value, json};
use test_support::clock::TestClock;
use test_support::execution_ports::execution_ports;
use test_support::model_request::model_request;
use test_support::processors::HeldProcessors;
use tokio_util::sync::CancellationToken;
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, ExecutionId, MessageId, ToolExecutionId, UuidV7Source};
use values::message::{ContentPart, Message, Role, ToolCall};
use values::tenant::TenantId;
use values::usage::Usage;

use crate::setup::budget;

const SECRET: &str = "sk-4711";

/// A tenant whose work beside the async workers is that of one test.
fn tenant() -> TenantId {
    format!("tenant-{}", AgentId::generate(&UuidV7Source)).parse().unwrap()
}

/// Attaches the hook once for each list of patterns.
fn stack(tenant: &TenantId, clock: TestClock, budget: ExecutionBudget, patterns: &[Value]) -> HookStack {
    let attached = |patterns: &Value| json!({"name": "redaction", "config": {"patterns": patterns}});
    let attached: Vec<HookConfig> = patterns
        .iter()
        .map(|patterns| serde_json::from_value(attached(patterns)).unwrap())
        .collect();
    let control = ExecutionControl::new(budget, CancellationToken::new(), Arc::new(clock));
    let ports = execution_ports(tenant, control);
    let registry = HookRegistry::new(builtin_hooks());
    registry.attach(HookStack::default(), &attached, &ports).unwrap()
}

fn key() -> Value {
    json!([{"name": "key", "regex": "sk-[0-9]+", "replacement": "[key]"}])
}

async fn call(stack: &HookStack, clock: TestClock, point: HookPoint, subject: HookSubject) -> HookContext {
    let now = clock.now();
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now);
    let context = HookContext::new(
        point,
        state.start_execution(ExecutionId::generate(&UuidV7Source), now),
        subject,
    );
    let (context, failure) = stack.call(context, || clock.now()).await;
    assert!(failure.is_none(), "{failure:?}");
    context
}

fn message(text: &str) -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, text, SystemClock.now())
}

fn request(system: &str, messages: Vec<Message>) -> HookSubject {
    HookSubject::Request(Box::new(ModelRequest {
        system: system.into(),
        ..model_request(messages)
    }))
}

/// The subject of each point of the hook, with a text.
fn subjects(text: &str) -> [(HookPoint, HookSubject); 5] {
    let content = vec![ContentPart::text(text)];
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "pay".to_owned(),
        arguments: json!({"note": text}).to_string(),
        signature: None,
    };
    let response = ModelResponse {
        content: content.clone(),
        provider_fields: None,
        finish_reason: FinishReason::Stop,
        usage: Usage::default(),
        model: None,
        provider_tool_calls: std::collections::BTreeMap::new(),
        response_id: None,
    };
    let execution = ToolExecution {
        id: ToolExecutionId::generate(&UuidV7Source),
        call: ToolCall {
            arguments: "{}".to_owned(),
            ..call.clone()
        },
        content,
        error: Some(AgentError {
            kind: ErrorKind::Tool,
            code: "tool_failed".to_owned(),
            message: text.to_owned(),
            source_name: None,
        }),
        started_at: SystemClock.now(),
        completed_at: SystemClock.now(),
        verdict: ToolVerdict::Executed,
        is_foreign: false,
        trace: ToolTrace::default(),
    };
    let decision = ToolDecision::Execute;
    [
        (HookPoint::BeforeExecution, HookSubject::Input(vec![message(text)])),
        (HookPoint::BeforeModelRequest, request(SECRET, vec![message(text)])),
        (HookPoint::AfterModelRequest, HookSubject::Response(Box::new(response))),
        (
            HookPoint::BeforeToolUse,
            HookSubject::ToolUse(ToolUse {
                decision,
                ..ToolUse::undecided(call)
            }),
        ),
        (HookPoint::AfterToolUse, HookSubject::ToolExecution(Box::new(execution))),
    ]
}

#[tokio::test]
async fn texts_are_redacted_beside_the_async_workers() {
    let (tenant, clock) = (tenant(), TestClock::new());
    let stack = stack(&tenant, clock, ExecutionBudget::default(), &[key()]);
    for text in ["", &"long ".repeat(100_000)] {
        for (point, subject) in subjects(&(text.to_owned() + SECRET)) {
            let held = HeldProcessors::of(&tenant).await;
            let redacted = call(&stack, clock, point, subject);
            tokio::pin!(redacted);
            assert!(futures_util::poll!(&mut redacted).is_pending(), "{point:?}");
            drop(held);
            let redacted = format!("{:?}", redacted.await.subject);
            assert!(redacted.contains("[key]") && !redacted.contains(SECRET), "{point:?}");
        }
    }
}

#[tokio::test]
async fn texts_that_hold_nothing_stay_the_same() {
    let clock = TestClock::new();
    let stack = stack(&tenant(), clock, ExecutionBudget::default(), &[key()]);
    let messages: Vec<Message> = (0..100).map(|_| message(&"clean ".repeat(10_000))).collect();
    for system in [SECRET, "clean"] {
        let subject = request(system, [messages.clone(), vec![message(SECRET)]].concat());
        let HookSubject::Request(given) = &subject else {
            panic!("no request")
        };
        let given = given.clone();
        let context = call(&stack, clock, HookPoint::BeforeModelRequest, subject).await;
        let HookSubject::Request(redacted) = context.subject else {
            panic!("no request")
        };
        let is_same = system != SECRET;
        assert_eq!(&*redacted.system, if is_same { system } else { "[key]" });
        assert_eq!(Arc::ptr_eq(&given.system, &redacted.system), is_same);
        let pairs = given.messages.iter().zip(redacted.messages.iter());
        let same: Vec<bool> = pairs.map(|(before, after)| Arc::ptr_eq(before, after)).collect();
        assert_eq!(same, [vec![true; 100], vec![false]].concat());
        assert_eq!(redacted.messages[100].joined_text(), "[key]");
    }
}

#[tokio::test]
async fn a_dropped_redaction_ends_with_the_current_search() {
    let (tenant, clock) = (tenant(), TestClock::new());
    // Each letter is found by a search of the whole text, so all of them take minutes.
    let slow = json!([{"name": "slow", "regex": "[a-z]*!|[a-z]", "replacement": ""}]);
    let stack = stack(&tenant, clock, ExecutionBudget::default(), &[slow]);
    let (point, subject) = subjects(&"a".repeat(1 << 19)).into_iter().next().unwrap();
    let redacted = call(&stack, clock, point, subject);
    let redacted = tokio::time::timeout(Duration::from_millis(200), redacted).await;
    assert!(redacted.is_err(), "the work has ended");
    let given_up = Instant::now();
    drop(HeldProcessors::of(&tenant).await);
    assert!(given_up.elapsed().as_secs() < 60, "the processor is held");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_cuts_it_and_nothing_passes_that_is_not_redacted() {
    let (tenant, tick) = (tenant(), Duration::from_millis(1));
    let held = HeldProcessors::of(&tenant).await;
    for (point, subject) in subjects(SECRET) {
        let clock = TestClock::new();
        let budget = budget(|budget| budget.max_seconds = Some(10.0));
        let stack = stack(&tenant, clock, budget, &[key(), key()]);
        let redacted = call(&stack, clock, point, subject.clone());
        tokio::pin!(redacted);
        // Timers end at whole milliseconds, and the clock stands between two.
        for seconds in [0, 9, 1] {
            assert!(futures_util::poll!(&mut redacted).is_pending(), "{point:?}");
            tokio::time::advance(Duration::from_secs(seconds) + tick).await;
        }
        // It has a second more than the run.
        assert!(futures_util::poll!(&mut redacted).is_pending(), "{point:?}");
        tokio::time::advance(Duration::from_secs(1) + tick).await;
        let Poll::Ready(context) = futures_util::poll!(&mut redacted) else {
            panic!("{point:?}: each hook has a second of its own")
        };
        assert_withheld(&context);
        // That second is all that there is, however often it is called, in an execution that began
        // when this one did.
        let state = context.state.clone();
        let again = HookContext::new(point, state, subject);
        let again = stack.call(again, || clock.now());
        tokio::pin!(again);
        let Poll::Ready((context, None)) = futures_util::poll!(again) else {
            panic!("{point:?}: each call has a second of its own")
        };
        assert_withheld(&context);
    }
    drop(held);
}

#[track_caller]
fn assert_withheld(context: &HookContext) {
    let (point, stop) = (context.point, context.state.stop_reason());
    assert_eq!(stop, Some(StopReason::TimeLimitReached), "{point:?}");
    assert!(!format!("{:?}", context.subject).contains(SECRET), "{point:?}");
    if let HookSubject::ToolUse(tool_use) = &context.subject {
        assert!(matches!(tool_use.decision, ToolDecision::Block { .. }));
    }
}
