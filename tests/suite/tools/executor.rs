//! Every call of a step becomes exactly one execution, also if its tool fails, panics or hangs.

use std::sync::Arc;
use std::time::Duration;

use agent::ports::{Tool, ToolCatalog as _, ToolContext};
use agent::state::{ErrorKind, ToolExecution};
use chrono::TimeDelta;
use futures_util::StreamExt as _;
use futures_util::stream;
use test_support::clock::TestClock;
use test_support::fake_tool::{Behaviour, FakeTool};
use tokio_util::sync::CancellationToken;
use tools::{CallLimits, ToolRegistry, builtin_tools};
use values::clock::{Clock, Deadline, Timestamp};
use values::ids::{AgentId, ExecutionId, UuidV7Source};
use values::message::{ToolCall, joined_text};
use values::session::EnvironmentState;
use workspace::environment::Environment;

const LIMITS: CallLimits = CallLimits {
    concurrency: 3,
    max_calls: 64,
    timeout: Duration::from_secs(5),
    max_output_bytes: 400,
};

/// A step of calls against tools, with what cuts it.
struct Step {
    clock: TestClock,
    deadline: Option<Timestamp>,
    cancellation: CancellationToken,
}

impl Step {
    fn new() -> Self {
        Self {
            clock: TestClock::new(),
            deadline: None,
            cancellation: CancellationToken::new(),
        }
    }

    fn with_deadline_in(self, millis: i64) -> Self {
        Self {
            deadline: Some(self.clock.now() + TimeDelta::milliseconds(millis)),
            ..self
        }
    }

    /// Executes calls, each given by its tool's name and arguments; their ids are their places.
    async fn execute(&self, tools: &[Arc<FakeTool>], calls: &[(&str, &str)]) -> Vec<ToolExecution> {
        let clock: Arc<dyn Clock> = Arc::new(self.clock);
        let mut registered = builtin_tools(&clock);
        registered.extend(tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>));
        let names: Vec<_> = registered.iter().map(|tool| tool.spec().name.clone()).collect();
        let registry = ToolRegistry::new(registered, LIMITS, Arc::clone(&clock), Arc::new(UuidV7Source)).unwrap();
        let context = ToolContext {
            agent_id: AgentId::generate(&UuidV7Source),
            execution_id: ExecutionId::generate(&UuidV7Source),
            step_number: 4,
            environment: Arc::new(Environment::in_memory(EnvironmentState::default())),
            deferred_tools: Arc::default(),
            metadata: Arc::default(),
            deadline: self.deadline.map(|at| Deadline::new(at, Arc::clone(&clock))),
            cancellation: self.cancellation.clone(),
            output: None,
            call_id: "c".to_owned(),
            idempotency_key: "key".to_owned(),
            continuation: None,
            trace: None,
        };
        let calls = calls.iter().enumerate().map(|(position, (name, arguments))| ToolCall {
            id: position.to_string(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            signature: None,
        });
        let calls: Vec<_> = calls.collect();
        let executor = registry.executor(&names).unwrap();
        let (executor, context) = (&executor, &context);
        let working = calls.iter().cloned().map(|call| executor.execute(call, context));
        let executions: Vec<_> = stream::iter(working).buffered(executor.concurrency()).collect().await;
        let answered: Vec<_> = executions.iter().map(|execution| execution.call.clone()).collect();
        assert_eq!(answered, calls, "one execution for each call, in their order");
        executions
    }
}

fn content(execution: &ToolExecution) -> String {
    joined_text(&execution.content)
}

#[track_caller]
fn assert_error(execution: &ToolExecution, kind: ErrorKind, code: &str, message: &str) {
    let error = execution.error.as_ref().expect("the call failed");
    assert_eq!((error.kind, error.code.as_str()), (kind, code));
    assert_eq!(error.source_name.as_deref(), Some(execution.call.name.as_str()));
    assert!(error.message.contains(message), "{}", error.message);
    assert!(content(execution).contains(message), "{}", content(execution));
    assert!(execution.to_result().is_error);
}

#[tokio::test(start_paused = true)]
async fn calls_may_run_at_once_and_have_their_own_times() {
    let (step, tool) = (Step::new(), FakeTool::new("wait", Behaviour::WaitAsAsked));
    let begun = step.clock.now();
    let calls = [
        ("wait", r#"{"ms": 150}"#),
        ("wait", r#"{"ms": 20}"#),
        ("wait", r#"{"ms": 80}"#),
    ];
    let executions = step.execute(&[tool], &calls).await;

    let times: Vec<_> = executions.iter().map(|e| e.duration().num_milliseconds()).collect();
    assert_eq!(times, [150, 20, 80]);
    assert_eq!(step.clock.now() - begun, TimeDelta::milliseconds(150));
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_before_the_tool_sees_them() {
    let (step, echo) = (Step::new(), FakeTool::new("echo", Behaviour::EchoArguments));
    let calls = [
        ("echo", ""),
        ("echo", r#"{"note": "hi", "ms": 1}"#),
        ("echo", r#"{"note": "hi""#),
        ("echo", r#"{"ms": 1, "ms": 2}"#),
        ("echo", "[1]"),
        ("echo", r#"{"ms": "soon"}"#),
        ("echo", r#"{"color": 1}"#),
    ];
    let executions = step.execute(&[Arc::clone(&echo)], &calls).await;
    assert_eq!(content(&executions[0]), "{}");
    assert_eq!(content(&executions[1]), r#"{"ms":1,"note":"hi"}"#);
    for (execution, message) in executions[2..].iter().zip([
        "not valid JSON: EOF",
        "the key \"ms\" appears twice",
        "they must be a JSON object",
        "/ms: \"soon\" is not of type \"integer\"",
        "'color' was unexpected",
    ]) {
        assert_error(execution, ErrorKind::Validation, "tool_arguments_invalid", message);
    }
    assert_eq!(echo.begun(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_unknown_tool_names_the_known_ones() {
    let step = Step::new();
    let executions = step.execute(&[], &[("abacus", "not even JSON")]).await;
    let clock: Arc<dyn Clock> = Arc::new(step.clock);
    let known = builtin_tools(&clock)
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect::<Vec<_>>();
    let message = format!("no tool is named \"abacus\"; the tools are {}", known.join(", "));
    assert_error(&executions[0], ErrorKind::Validation, "tool_unknown", &message);
}

#[tokio::test(start_paused = true)]
async fn tools_that_fail_or_panic_leave_the_others_alone() {
    let step = Step::new();
    let tools = [
        FakeTool::new("fails", Behaviour::Fail("no such city".to_owned())),
        FakeTool::new("panics", Behaviour::PanicLater),
        FakeTool::new("panics_at_once", Behaviour::PanicAtOnce),
    ];
    let calls = [
        ("fails", ""),
        ("panics", ""),
        ("panics_at_once", ""),
        ("calculator", r#"{"expression": "0.1+0.2"}"#),
    ];
    let executions = step.execute(&tools, &calls).await;
    assert_error(&executions[0], ErrorKind::Tool, "tool_failed", "no such city");
    for panicked in &executions[1..3] {
        assert_error(panicked, ErrorKind::Tool, "tool_panicked", "internal error");
        assert!(!serde_json::to_string(panicked).unwrap().contains("secret"));
    }
    assert_eq!(
        (content(&executions[3]), executions[3].has_error()),
        ("0.3".to_owned(), false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cut_at_its_own_timeout_or_at_the_service_s() {
    let step = Step::new();
    let tools = [
        FakeTool::new("hangs", Behaviour::Hang),
        FakeTool::with_timeout("hangs_briefly", Behaviour::Hang, Some(Duration::from_millis(250))),
        FakeTool::with_timeout(
            "slow",
            Behaviour::Wait(Duration::from_secs(9)),
            Some(Duration::from_secs(10)),
        ),
    ];
    let executions = step
        .execute(&tools, &[("hangs", ""), ("hangs_briefly", ""), ("slow", "")])
        .await;
    assert_error(&executions[0], ErrorKind::Timeout, "tool_timeout", "within 5s");
    assert_error(&executions[1], ErrorKind::Timeout, "tool_timeout", "within 250ms");
    assert!(!executions[2].has_error());
    let times: Vec<_> = executions.iter().map(|e| e.duration().num_milliseconds()).collect();
    assert_eq!(times, [5_000, 250, 9_000]);
    assert!(tools.iter().all(|tool| tool.working() == 0), "cut calls are dropped");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_run_cuts_calls_and_lets_no_other_begin() {
    let step = Step::new().with_deadline_in(400);
    let begun = step.clock.now();
    let tool = FakeTool::new("wait", Behaviour::WaitAsAsked);
    let calls = [
        ("wait", r#"{"ms": 100}"#),
        ("wait", r#"{"ms": 1000}"#),
        ("wait", r#"{"ms": 1000}"#),
        ("wait", r#"{"ms": 1000}"#),
        ("wait", r#"{"ms": 1000}"#),
    ];
    let executions = step.execute(&[Arc::clone(&tool)], &calls).await;
    assert!(!executions[0].has_error());
    for cut in &executions[1..] {
        assert_error(cut, ErrorKind::Timeout, "tool_timeout", "the run's time was spent");
    }
    assert_eq!(step.clock.now() - begun, TimeDelta::milliseconds(400));
    assert_eq!((tool.begun(), tool.working()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn cancellation_cuts_calls_and_lets_no_other_begin() {
    let step = Step::new();
    let tool = FakeTool::new("hangs", Behaviour::Hang);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(70)).await;
        step.cancellation.cancel();
    };
    let tools = [Arc::clone(&tool)];
    let (executions, ()) = tokio::join!(step.execute(&tools, &[("hangs", ""); 5]), cancel);
    for cut in &executions {
        assert_error(cut, ErrorKind::Tool, "tool_cancelled", "the run was cancelled");
    }
    let times: Vec<_> = executions.iter().map(|e| e.duration().num_milliseconds()).collect();
    assert_eq!(times, [70, 70, 70, 0, 0]);
    assert_eq!((tool.begun(), tool.working()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn long_results_are_cut_and_marked() {
    let step = Step::new();
    let tools = [
        FakeTool::new("talks", Behaviour::Answer("é".repeat(5_000))),
        FakeTool::new("fails", Behaviour::Fail("x".repeat(5_000))),
    ];
    let executions = step.execute(&tools, &[("talks", ""), ("fails", "")]).await;
    for execution in &executions {
        let text = content(execution);
        assert!(text.len() < 600, "{text}");
        assert!(text.contains("The output is cut here"), "{text}");
    }
    assert!(content(&executions[0]).starts_with(&"é".repeat(200)));
    assert_eq!(executions[1].error.as_ref().unwrap().message.len(), 2_000);
}
