//! The hooks of an agent are in force for those that work for it, in instances of their own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::HookPoint;
use agent::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, HookSubject};
use agent::ports::ToolDecision;
use agent::record::RunStatus;
use agent_runtime::run::process;
use futures_util::future::BoxFuture;
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_model::{FakeModel, asks_for, says};
use values::json::{Object, Value};
use values::message::joined_text;

use super::by_hand::{run, service};

/// The calls of the hooks: their configuration, the number of the instance, the point.
type Log = Arc<Mutex<Vec<(String, usize, HookPoint)>>>;

/// Makes hooks that record what they are called for. One told to block lets no calculator be used.
#[derive(Debug, Default)]
struct Recording {
    made: Mutex<usize>,
    log: Log,
}

#[derive(Debug)]
struct Recorded {
    name: String,
    instance: usize,
    log: Log,
}

impl HookFactory for Recording {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn check(&self, _: &Object) -> Result<(), String> {
        Ok(())
    }

    fn make(&self, config: &Object, _: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        Ok(Arc::new(Recorded {
            name: config["as"].as_str().unwrap().to_owned(),
            instance: *made,
            log: Arc::clone(&self.log),
        }))
    }
}

impl Hook for Recorded {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn points(&self) -> &[HookPoint] {
        &[
            HookPoint::BeforeExecution,
            HookPoint::BeforeModelRequest,
            HookPoint::BeforeToolUse,
        ]
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        let entry = (self.name.clone(), self.instance, context.point);
        self.log.lock().unwrap().push(entry);
        if let HookSubject::ToolUse(tool_use) = &mut context.subject
            && tool_use.call.name == "calculator"
            && self.name == "of lead"
        {
            tool_use.decision = ToolDecision::block("no sums here");
        }
        Box::pin(async { Ok(context) })
    }
}

fn hook(name: &str, priority: i32) -> Value {
    json!({"name": "recording", "priority": priority, "config": {"as": name}})
}

#[tokio::test]
async fn the_hooks_of_an_agent_are_in_force_for_its_subagents() {
    let database = TestDatabase::sqlite();
    let asks = |id: &str, name: &str, arguments: &str| asks_for(&[(id, name, arguments)]);
    let lead = FakeModel::new([asks("c", "worker", r#"{"task": "add"}"#), says("done")]);
    let worker = FakeModel::new([asks("w", "calculator", r#"{"expression": "1+1"}"#), says("I may not")]);
    let agents = [
        json!({
            "name": "lead", "model": "m/lead", "tools": ["calculator"], "subagents": [{"agent": "worker"}],
            "hooks": [hook("of lead", 1), hook("of both", 0)],
        }),
        json!({
            "name": "worker", "model": "m/worker", "tools": ["calculator"],
            "hooks": [hook("of both", 0), hook("of worker", 2)],
        }),
    ];
    let log = Log::default();
    let recording = Recording {
        log: Arc::clone(&log),
        ..Recording::default()
    };
    let service = service(&database, &lead, &worker, recording, agents).await;
    let (record, _) = run(&service).await;
    assert_eq!(
        (record.summary.status, record.output_text().as_str()),
        (RunStatus::Completed, "done")
    );

    let (asked, used) = (HookPoint::BeforeModelRequest, HookPoint::BeforeToolUse);
    let lead_calls = |point| [("of lead", 1, point), ("of both", 2, point)];
    // Each execution has instances of its own, in the order of their priorities; what both attach
    // alike is there once.
    let worker_calls = |point| [("of worker", 5, point), ("of lead", 3, point), ("of both", 4, point)];
    let expected: Vec<_> = lead_calls(HookPoint::BeforeExecution)
        .into_iter()
        .chain(lead_calls(asked))
        .chain(lead_calls(used))
        .chain(worker_calls(HookPoint::BeforeExecution))
        .chain(worker_calls(asked))
        .chain(worker_calls(used))
        .chain(worker_calls(asked))
        .chain(lead_calls(asked))
        .map(|(name, instance, point)| (name.to_owned(), instance, point))
        .collect();
    assert_eq!(*log.lock().unwrap(), expected);

    // The hook of the lead has blocked a call of the worker.
    let requests = worker.requests();
    let result = requests[1]
        .messages
        .last()
        .unwrap()
        .tool_results()
        .next()
        .unwrap()
        .clone();
    assert_eq!(
        (joined_text(&result.content).as_str(), result.is_error),
        ("no sums here", true)
    );
    process::shut_down(&service, Duration::from_secs(1)).await;
}
