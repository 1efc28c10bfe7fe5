//! The boards of live runs: one contract for both, and what only replicas that share a Redis server promise.

mod contract;
mod outages;
mod replicas;
pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use agent_runtime::agent::state::{AgentStepType, ErrorList, FinishReason};
use agent_runtime::board::{Board, LiveRun};
use agent_runtime::clock::{Clock as _, SystemClock};
use agent_runtime::ids::{MessageId, RunId, SessionId, StepId, UuidV7Source};
use agent_runtime::json::Object;
use agent_runtime::message::{Message, Role};
use agent_runtime::record::{RunMode, RunStatus, RunSummary, StepRecord};
use agent_runtime::tenant::TenantId;
use agent_runtime::usage::Usage;

/// Tests share servers, so each has a tenant of its own.
fn new_tenant() -> TenantId {
    format!("t-{}", RunId::generate(&UuidV7Source)).parse().unwrap()
}

fn new_session_id() -> SessionId {
    SessionId::generate(&UuidV7Source)
}

fn new_run(base: Option<SessionId>) -> Arc<LiveRun> {
    let now = SystemClock.now();
    Arc::new(LiveRun::begun(RunSummary {
        run_id: RunId::generate(&UuidV7Source),
        session_id: new_session_id(),
        base_session_id: base,
        agent: "demo".to_owned(),
        agent_version: None,
        model: "demo/scripted".parse().unwrap(),
        mode: RunMode::Stream,
        status: RunStatus::Running,
        stop_reason: None,
        usage: Usage::default(),
        step_count: 0,
        error: None,
        metadata: Object::from_iter([("ticket".to_owned(), "A-1".into())]),
        created_at: now,
        started_at: Some(now),
        completed_at: None,
    }))
}

/// The run after one more step that said the text.
fn with_step(run: &LiveRun, text: &str) -> Arc<LiveRun> {
    let now = SystemClock.now();
    let mut run = run.clone();
    run.summary.step_count += 1;
    run.steps.push(Arc::new(StepRecord {
        step_number: run.summary.step_count,
        step_id: StepId::generate(&UuidV7Source),
        step_type: AgentStepType::FinalResponse,
        finish_reason: Some(FinishReason::Stop),
        model: Some("scripted-1".to_owned()),
        usage: Usage::default(),
        started_at: now,
        completed_at: now,
        duration_ms: 7,
        tool_executions: Vec::new(),
        errors: ErrorList::default(),
        messages: vec![Arc::new(new_message(text))],
    }));
    Arc::new(run)
}

/// The run after its end, which waits for its record to be stored.
fn ended(run: &LiveRun, status: RunStatus) -> Arc<LiveRun> {
    let mut run = run.clone();
    run.summary.status = status;
    run.summary.completed_at = Some(SystemClock.now());
    run.output = vec![Arc::new(new_message("the end"))];
    Arc::new(run)
}

fn new_message(text: &str) -> Message {
    Message::text(
        MessageId::generate(&UuidV7Source),
        Role::Assistant,
        text,
        SystemClock.now(),
    )
}

async fn lookup(board: &dyn Board, tenant: &TenantId, run: &LiveRun) -> Option<Arc<LiveRun>> {
    board.run_lookup(tenant, run.summary.run_id).await.unwrap()
}

async fn open(board: &dyn Board, tenant: &TenantId, run: &Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
    board.run_open(tenant, Arc::clone(run), exclusive).await.unwrap()
}

async fn listed(board: &dyn Board, tenant: &TenantId) -> Vec<RunId> {
    let runs = board.run_list(tenant).await.unwrap();
    runs.iter().map(|run| run.summary.run_id).collect()
}

/// Waits until the value is the one that is wanted.
async fn until<T: PartialEq + std::fmt::Debug>(wanted: T, mut read: impl AsyncFnMut() -> T) {
    let mut last = None;
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let value = read().await;
            if value == wanted {
                return;
            }
            last = Some(value);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited for {wanted:?}, last saw {last:?}");
}
