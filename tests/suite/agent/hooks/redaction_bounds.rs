//! `redaction` and what others want meanwhile: their turns, an end of the run, and agents that are attached already.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use agent_runtime::agent::compilers::Conversation;
use agent_runtime::agent::drivers::{ModelChain, ModelChoice};
use agent_runtime::agent::hooks::{
    ExecutionPorts, HookContext, HookPoint, HookRegistry, HookStack, HookSubject, StackSlot, ToolDecision, ToolUse,
    builtin_hooks,
};
use agent_runtime::agent::ports::ModelRequest;
use agent_runtime::agent::state::{
    AgentError, AgentState, ErrorKind, ExecutionBudget, ExecutionStatus, FinishReason, ModelResponse, StopReason,
    ToolExecution, ToolTrace, ToolVerdict,
};
use agent_runtime::agent::{ExecutionControl, HookConfig};
use agent_runtime::clock::{Clock as _, SystemClock};
use agent_runtime::fair_share::FairShare;
use agent_runtime::ids::{AgentId, ExecutionId, MessageId, ToolExecutionId, UuidV7Source};
use agent_runtime::message::{ContentPart, Message, Role, ToolCall};
use agent_runtime::model_parameters::ToolChoice;
use agent_runtime::model_ref::ResponseFormat;
use agent_runtime::tenant::TenantId;
use agent_runtime::usage::Usage;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::setup::Setup;
use crate::support::fake_model::{FakeModel, says};
use crate::support::processors::HeldProcessors;
use crate::support::recorder::Recorder;

const SECRET: &str = "sk-4711";

/// A tenant whose work beside the async workers is that of one test.
fn tenant() -> TenantId {
    format!("tenant-{}", AgentId::generate(&UuidV7Source)).parse().unwrap()
}

fn stack(tenant: &TenantId, budget: ExecutionBudget, patterns: &Value) -> HookStack {
    let attached: HookConfig =
        serde_json::from_value(json!({"name": "redaction", "config": {"patterns": patterns}})).unwrap();
    let choice = ModelChoice {
        model_ref: "fake/one".parse().unwrap(),
        model: FakeModel::new([]),
        price: None,
    };
    let control = ExecutionControl::new(budget, CancellationToken::new(), Arc::new(SystemClock));
    let ports = ExecutionPorts {
        tenant: tenant.clone(),
        models: ModelChain::new(choice, []),
        compiler: Arc::new(Conversation::default()),
        control: Arc::new(control),
        ids: Arc::new(UuidV7Source),
        events: Arc::new(Recorder::default()),
        request_room: FairShare::new(1 << 20),
        stack: StackSlot::default(),
    };
    let registry = HookRegistry::new(builtin_hooks());
    registry.attach(HookStack::default(), &[attached], &ports).unwrap()
}

fn key() -> Value {
    json!([{"name": "key", "regex": "sk-[0-9]+", "replacement": "[key]"}])
}

async fn call(stack: &HookStack, point: HookPoint, subject: HookSubject) -> HookContext {
    let now = SystemClock.now();
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now);
    let context = HookContext {
        point,
        state: state.start_execution(ExecutionId::generate(&UuidV7Source), now),
        subject,
    };
    let (context, failure) = stack.call(context, || SystemClock.now()).await;
    assert!(failure.is_none(), "{failure:?}");
    context
}

fn message(text: &str) -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, text, SystemClock.now())
}

fn request(messages: Vec<Message>) -> HookSubject {
    HookSubject::Request(Box::new(ModelRequest {
        model: "m".to_owned(),
        system: SECRET.into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
        provider_tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        response_format: ResponseFormat::Text,
        max_output_tokens: None,
        parameters: Arc::default(),
    }))
}

/// What each point that it is called at is about, with a text.
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
        trace: ToolTrace::default(),
    };
    let decision = ToolDecision::Execute;
    [
        (HookPoint::BeforeExecution, HookSubject::Input(vec![message(text)])),
        (HookPoint::BeforeModelRequest, request(vec![message(text)])),
        (HookPoint::AfterModelRequest, HookSubject::Response(Box::new(response))),
        (
            HookPoint::BeforeToolUse,
            HookSubject::ToolUse(ToolUse { call, decision }),
        ),
        (HookPoint::AfterToolUse, HookSubject::ToolExecution(Box::new(execution))),
    ]
}

/// Returns how often other tasks of the thread have their turn until the work is done.
async fn turns_beside<T>(work: impl Future<Output = T>) -> (T, u64) {
    let mut turns = 0;
    let others = async {
        loop {
            tokio::task::yield_now().await;
            turns += 1;
        }
    };
    let done = tokio::select! {
        biased;
        done = work => done,
        () = others => unreachable!(),
    };
    (done, turns)
}

#[tokio::test]
async fn patterns_are_compiled_and_large_texts_redacted_beside_other_tasks() {
    let stack = stack(&tenant(), ExecutionBudget::default(), &key());
    let (point, small) = subjects(SECRET).into_iter().next().unwrap();
    let (_, turns) = turns_beside(call(&stack, point, small.clone())).await;
    assert!(
        turns > 0,
        "the patterns are compiled on the only thread of this runtime"
    );
    // What takes no longer than handing it over is done at once.
    let (_, turns) = turns_beside(call(&stack, point, small)).await;
    assert_eq!(turns, 0);
    let long = "long ".repeat(100_000) + SECRET;
    for (point, subject) in subjects(&long) {
        let (context, turns) = turns_beside(call(&stack, point, subject)).await;
        assert!(turns > 0, "{point:?}");
        let redacted = format!("{:?}", context.subject);
        assert!(
            redacted.contains("long [key]") && !redacted.contains(SECRET),
            "{point:?}"
        );
    }
    // Each piece of a long history is handed over by itself, and messages that hold nothing stay the same.
    let messages: Vec<Message> = (0..100).map(|_| message(&"clean ".repeat(10_000))).collect();
    let HookSubject::Request(given) = request([messages, vec![message(&long)]].concat()) else {
        panic!("no request")
    };
    let subject = HookSubject::Request(given.clone());
    let (context, turns) = turns_beside(call(&stack, HookPoint::BeforeModelRequest, subject)).await;
    let HookSubject::Request(redacted) = context.subject else {
        panic!("no request")
    };
    assert!(turns > 5, "{turns}");
    assert_eq!(&*redacted.system, "[key]");
    let pairs = given.messages.iter().zip(redacted.messages.iter());
    let same: Vec<bool> = pairs.map(|(before, after)| Arc::ptr_eq(before, after)).collect();
    assert_eq!(same, [vec![true; 100], vec![false]].concat());
    assert!(!redacted.messages[100].joined_text().contains(SECRET));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_cuts_it_and_nothing_passes_that_is_not_redacted() {
    let tenant = tenant();
    let held = HeldProcessors::of(&tenant).await;
    for (point, subject) in subjects(SECRET) {
        let budget = ExecutionBudget {
            max_seconds: Some(10.0),
            ..ExecutionBudget::default()
        };
        let stack = stack(&tenant, budget, &key());
        let redacted = call(&stack, point, subject);
        tokio::pin!(redacted);
        // It has a second more than the run.
        for seconds in [0, 9, 1] {
            assert!(futures_util::poll!(&mut redacted).is_pending(), "{point:?}");
            tokio::time::advance(Duration::from_secs(seconds)).await;
        }
        assert!(futures_util::poll!(&mut redacted).is_pending(), "{point:?}");
        tokio::time::advance(Duration::from_millis(1_001)).await;
        let context = redacted.await;
        assert_eq!(
            context.state.stop_reason(),
            Some(StopReason::TimeLimitReached),
            "{point:?}"
        );
        assert!(!format!("{:?}", context.subject).contains(SECRET), "{point:?}");
        if let HookSubject::ToolUse(tool_use) = &context.subject {
            assert!(matches!(tool_use.decision, ToolDecision::Block { .. }));
        }
    }
    drop(held);
}

#[tokio::test]
async fn hooks_that_were_attached_before_there_were_limits_are_in_force() {
    let large = json!({"name": "large", "regex": r"\w{10}4711"});
    let patterns = [vec![large; 5], vec![key()[0].clone()]].concat();
    let setup = Setup::new([says(SECRET)]).with_attached("redaction", json!({"patterns": patterns}));
    let setup = (0..40).fold(setup, |setup, _| setup.with_attached("limits", json!({"max_steps": 5})));
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(state.final_text(), "[key]");
}
