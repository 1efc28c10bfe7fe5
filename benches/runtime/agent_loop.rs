//! The loop's own time: runs of 500 tool calls whose model and tool respond at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::compilers::{Sections, Traces};
use agent::definition::{DriverKind, ErrorPolicy};
use agent::drivers::{Driver, DriverPorts};
use agent::hooks::{ErrorPolicyHook, ExecutionGuard, HookStack};
use agent::model_calls::{ModelChain, ModelChoice};
use agent::ports::{
    Model, ModelEvent, ModelRequest, ModelStream, Tool, ToolCatalog as _, ToolContext, ToolError, ToolOutput, ToolSpec,
};
use agent::state::{AgentState, ExecutionBudget, FinishReason, ModelResponse};
use agent::{AgentEvent, AgentLoop, CallSeed, EventSink, ExecutionControl};
use criterion::Criterion;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::{CallLimits, ToolRegistry};
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, UuidV7Source};
use values::json::Value;
use values::message::{ContentPart, ToolCall};
use values::session::EnvironmentState;
use values::tenant::TenantId;
use values::usage::Usage;
use workspace::environment::Environment;

use crate::fixtures::message;

const CALLS: usize = 500;

pub(crate) fn benches(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let mut group = criterion.benchmark_group("loop");
    for per_step in [1, 10, 500] {
        let name = format!("{CALLS} tool calls, {per_step} in a step");
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert_eq!(runtime.block_on(run(per_step)).step_count(), CALLS / per_step + 1));
        });
    }
    group.finish();
}

async fn run(per_step: usize) -> AgentState {
    let clock = Arc::new(SystemClock);
    let control = Arc::new(ExecutionControl::new(
        ExecutionBudget::default(),
        CancellationToken::new(),
        clock.clone(),
    ));
    let hooks = HookStack::default()
        .with_hook(1_000, Arc::new(ExecutionGuard::new(Arc::clone(&control))))
        .with_hook(
            -1_000,
            Arc::new(ErrorPolicyHook::new(ErrorPolicy::default(), clock.clone())),
        );
    let hooks = Arc::new(hooks);
    let tool: Arc<dyn Tool> = Arc::new(Instant::new());
    let tools = ToolRegistry::new([tool], CallLimits::default(), clock.clone(), Arc::new(UuidV7Source)).unwrap();
    let model = Arc::new(Asks {
        per_step,
        asked: AtomicUsize::new(0),
    });
    let choice = ModelChoice {
        model_ref: "bench/asks".parse().unwrap(),
        model,
        price: None,
    };
    let ports = DriverPorts {
        tenant: TenantId::anonymous(),
        models: ModelChain::new(choice, []),
        parameters: Arc::default(),
        provider_tools: Arc::default(),
        answers: Arc::default(),
        tools: tools.executor(&["instant".to_owned()]).unwrap(),
        parallel_tool_calls: true,
        formats: Arc::default(),
        max_corrections: 2,
        compiler: Arc::new(Sections::conversation(Traces::default())),
        hooks: Arc::clone(&hooks),
        control: Arc::clone(&control),
        call_seed: CallSeed::of_call("bench"),
        journal: None,
        environment: Arc::new(Environment::in_memory(EnvironmentState::default())),
        ids: Arc::new(UuidV7Source),
        events: Arc::new(Deaf),
    };
    let driver = Driver::new(ports, DriverKind::ToolCalling, Vec::new());
    let state = AgentState::new(AgentId::generate(&UuidV7Source), clock.now());
    let agent_loop = AgentLoop::new(driver, hooks, Arc::new(Deaf), control, Arc::new(UuidV7Source));
    agent_loop.run(state, vec![(*message(0)).clone()]).await
}

/// Asks for so many calls at a time until it has asked for all, and ends.
#[derive(Debug)]
struct Asks {
    per_step: usize,
    asked: AtomicUsize,
}

impl Model for Asks {
    fn stream(&self, _: ModelRequest) -> ModelStream {
        let first = self.asked.fetch_add(self.per_step, Ordering::Relaxed);
        let calls = (first..(first + self.per_step).min(CALLS)).map(|n| {
            ContentPart::ToolCall(ToolCall {
                id: format!("call_{n}"),
                name: "instant".to_owned(),
                arguments: r#"{"note": "a note of some words"}"#.to_owned(),
                signature: None,
            })
        });
        let content: Vec<_> = calls.collect();
        let (content, finish_reason) = if content.is_empty() {
            (vec![ContentPart::text("done")], FinishReason::Stop)
        } else {
            (content, FinishReason::ToolCalls)
        };
        let response = ModelResponse {
            content,
            provider_fields: None,
            finish_reason,
            usage: Usage {
                input_tokens: 10,
                output_tokens: 5,
                total_tokens: 15,
                ..Usage::default()
            },
            model: None,
            provider_tool_calls: std::collections::BTreeMap::new(),
            response_id: None,
        };
        let end = ModelEvent::Completed(Box::new(response));
        futures_util::stream::iter([Ok(end)]).boxed()
    }
}

/// Completes at once.
#[derive(Debug)]
struct Instant(ToolSpec);

impl Instant {
    fn new() -> Self {
        Self(ToolSpec {
            name: "instant".to_owned(),
            description: "answers at once".to_owned(),
            parameters: json!({"type": "object", "properties": {"note": {"type": "string"}}}),
            idempotent: true,
            read_only: false,
            destructive: false,
            timeout: None,
        })
    }
}

impl Tool for Instant {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Value, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::text("an answer of some words"))))
    }
}

/// Discards all events.
#[derive(Debug)]
struct Deaf;

impl EventSink for Deaf {
    fn emit(&self, _: AgentEvent) {}
}
