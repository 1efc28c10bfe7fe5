//! Faults that only tools and hooks of tests cause: a subagent that can't begin, one whose
//! execution breaks off, and tools that end runs.

use std::sync::Arc;
use std::time::Duration;

use agent::hooks::{ExecutionPorts, Hook, HookFactory};
use agent::record::RunStatus;
use agent::state::{ExecutionStatus, StopReason};
use agent_runtime::run::process;
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_model::{FakeModel, asks_for, says};
use values::json::Object;

use super::by_hand::{published, run, service};

/// A hook that looks right when an agent is stored, and can't be made.
#[derive(Debug)]
struct Unmakable;

impl HookFactory for Unmakable {
    fn name(&self) -> &'static str {
        "unmakable"
    }

    fn check(&self, _: &Object) -> Result<(), String> {
        Ok(())
    }

    fn make(&self, _: &Object, _: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Err("its file is gone".to_owned())
    }
}

fn asking() -> Arc<FakeModel> {
    FakeModel::new([asks_for(&[("c", "worker", r#"{"task": "add"}"#)]), says("done")])
}

/// The result of the call, as the model of the parent agent reads it.
fn reported(lead: &FakeModel) -> String {
    let requests = lead.requests();
    let result = requests[1].messages.last().unwrap().tool_results().next().unwrap();
    assert!(result.is_error);
    result.content[0].as_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_subagent_that_can_not_begin_is_a_tool_error() {
    let database = TestDatabase::sqlite();
    let (lead, worker) = (asking(), FakeModel::new([]));
    let agents = [
        json!({"name": "lead", "model": "m/lead", "subagents": [{"agent": "worker"}]}),
        json!({"name": "worker", "model": "m/worker", "hooks": [{"name": "unmakable"}]}),
    ];
    let service = service(&database, &lead, &worker, Unmakable, agents).await;
    let (record, steps) = run(&service).await;
    assert_eq!(record.summary.status, RunStatus::Completed);
    let reported = reported(&lead);
    assert!(
        reported.starts_with("the agent worker can't begin: ") && reported.contains("its file is gone"),
        "{reported}"
    );
    assert!(steps[0].tool_executions[0].subagent.is_none());
    assert!(worker.requests().is_empty());
    process::shut_down(&service, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_subagent_that_breaks_off_is_a_tool_error_with_its_trace_and_usage() {
    let database = TestDatabase::sqlite();
    // The model has no second answer, and panics.
    let worker = FakeModel::new([asks_for(&[("w", "calculator", r#"{"expression": "1+1"}"#)])]);
    let lead = asking();
    let agents = [
        json!({"name": "lead", "model": "m/lead", "tools": ["calculator"], "subagents": [{"agent": "worker"}]}),
        json!({"name": "worker", "model": "m/worker", "tools": ["calculator"]}),
    ];
    let service = service(&database, &lead, &worker, Unmakable, agents).await;
    let (record, steps) = run(&service).await;
    assert_eq!(record.summary.status, RunStatus::Completed);
    assert_eq!(reported(&lead), "the agent worker met an internal error");
    assert_eq!(record.summary.usage.total_tokens, 45);
    let execution = &steps[0].tool_executions[0];
    let subagent = execution.subagent.as_ref().unwrap();
    assert_eq!(
        (subagent.status, subagent.stop_reason),
        (ExecutionStatus::Failed, None::<StopReason>)
    );
    assert_eq!((subagent.steps.len(), subagent.usage.total_tokens), (1, 15));
    assert_eq!(subagent.steps[0].messages.len(), 2);
    process::shut_down(&service, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_tool_ends_the_execution_that_called_it_and_none_above() {
    let database = TestDatabase::sqlite();
    let worker = FakeModel::new([asks_for(&[("w", "finish", "{}")])]);
    let lead = asking();
    let agents = [
        json!({"name": "lead", "model": "m/lead", "tools": ["finish"], "subagents": [{"agent": "worker"}]}),
        json!({"name": "worker", "model": "m/worker", "tools": ["finish"]}),
    ];
    let service = service(&database, &lead, &worker, Unmakable, agents).await;
    let (record, steps) = run(&service).await;
    assert_eq!(record.summary.status, RunStatus::Completed);
    assert_eq!(record.summary.step_count, 2);
    let requests = lead.requests();
    let result = requests[1].messages.last().unwrap().tool_results().next().unwrap();
    assert!(!result.is_error);
    let words = result.content[0].as_text().unwrap();
    assert!(words.contains("the tool finish ended the run"), "{words}");
    let subagent = steps[0].tool_executions[0].subagent.as_ref().unwrap();
    assert_eq!(
        (subagent.status, subagent.stop_reason, subagent.steps.len()),
        (ExecutionStatus::Stopped, Some(StopReason::StopRequested), 1)
    );
    process::shut_down(&service, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_run_that_a_tool_ends_is_stopped_and_publishes_its_session() {
    let database = TestDatabase::sqlite();
    let lead = FakeModel::new([asks_for(&[("c", "finish", "{}")])]);
    let agents = [
        json!({"name": "lead", "model": "m/lead", "tools": ["finish"]}),
        json!({"name": "worker", "model": "m/worker"}),
    ];
    let service = service(&database, &lead, &FakeModel::new([]), Unmakable, agents).await;
    let (record, _) = run(&service).await;
    let summary = &record.summary;
    assert_eq!(
        (summary.status, summary.stop_reason),
        (RunStatus::Stopped, Some(StopReason::StopRequested))
    );
    let bundle = published(&database, &record).await;
    let last = bundle.history.last().unwrap();
    assert_eq!(
        last.tool_results().next().unwrap().content[0].as_text(),
        Some("handed over")
    );
    process::shut_down(&service, Duration::from_secs(1)).await;
}
