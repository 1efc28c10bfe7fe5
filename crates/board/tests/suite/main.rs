//! The boards of live runs: one contract for both, and what only replicas that share a Redis server
//! promise.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets what it does not expect fails"
)]

// To its own tests, Cargo gives a library by its full name only.
extern crate agent_runtime_board as board;

/// Runs each promise on both boards.
macro_rules! contract {
    ($($promise:ident,)+) => {
        mod in_process {
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(&board::Board::default()).await;
                }
            )+
        }

        mod redis {
            $(
                #[tokio::test]
                async fn $promise() {
                    let Some(board) = test_support::redis_server::shared_board().await else { return };
                    super::$promise(&board).await;
                    super::Board::close(&board).await;
                }
            )+
        }
    };
}

mod contract;
mod events;
mod feed;
mod redis;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use agent::AgentEvent;
use agent::record::{RunEvent, RunEventPayload, RunStatus, StepRecord};
use agent::state::{AgentStepType, ErrorList, FinishReason};
use board::{Board, LiveRun};
use test_support::live_run::new_run;
use test_support::redis_server::{EXPIRY, PrivateServer, board, shared_url};
use values::clock::{Clock as _, SystemClock};
use values::ids::{MessageId, RunId, SessionId, StepId, UuidV7Source};
use values::message::{Message, Role};
use values::tenant::TenantId;
use values::usage::Usage;

/// Tests share servers, so each has a tenant of its own.
fn new_tenant() -> TenantId {
    format!("t-{}", RunId::generate(&UuidV7Source)).parse().unwrap()
}

fn new_session_id() -> SessionId {
    SessionId::generate(&UuidV7Source)
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
        answered_by: Some("other/model".parse().unwrap()),
        model: Some("scripted-1".to_owned()),
        usage: Usage::default(),
        provider_tool_calls: std::collections::BTreeMap::new(),
        started_at: now,
        completed_at: now,
        duration_ms: 7,
        model_requests: Vec::new(),
        tool_executions: Vec::new(),
        errors: ErrorList::default(),
        left_out: Vec::new(),
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

/// Two replicas that share a server of their own, and a tenant.
async fn private_replicas(expiry: Duration) -> Option<(PrivateServer, Board, Board, TenantId)> {
    let server = PrivateServer::start()?;
    let [here, there] = boards(&server.url(), expiry).await;
    Some((server, here, there, new_tenant()))
}

/// Two replicas that share the server of all tests, and a tenant.
async fn replicas() -> Option<(Board, Board, TenantId)> {
    let [here, there] = boards(&shared_url()?, EXPIRY).await;
    Some((here, there, new_tenant()))
}

async fn boards(url: &str, expiry: Duration) -> [Board; 2] {
    [board(url, expiry).await, board(url, expiry).await]
}

async fn close(boards: [&Board; 2]) {
    for board in boards {
        board.close().await;
    }
}

async fn lookup(board: &Board, tenant: &TenantId, run: &LiveRun) -> Option<Arc<LiveRun>> {
    board.run_lookup(tenant, run.summary.run_id).await
}

async fn open(board: &Board, tenant: &TenantId, run: &Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
    board.run_open(tenant, Arc::clone(run), exclusive).await
}

async fn listed(board: &Board, tenant: &TenantId) -> Vec<RunId> {
    let runs = board.run_list(tenant).await;
    runs.iter().map(|run| run.summary.run_id).collect()
}

/// An event that says the text; equal for equal arguments.
fn event(run: &LiveRun, sequence: u64, text: &str) -> Arc<RunEvent> {
    let payload = AgentEvent::MessageDelta {
        step_number: 1,
        text: text.to_owned(),
        refusal: false,
    };
    Arc::new(RunEvent {
        sequence,
        run_id: run.summary.run_id,
        time: run.summary.created_at,
        payload: RunEventPayload::Agent(payload),
    })
}

/// The last event of a run.
fn terminal(run: &LiveRun, sequence: u64) -> Arc<RunEvent> {
    let record = ended(run, RunStatus::Completed).record();
    Arc::new(RunEvent {
        sequence,
        run_id: run.summary.run_id,
        time: run.summary.created_at,
        payload: RunEventPayload::terminal(Arc::new(record)),
    })
}

/// Tells events that say the text.
fn append(board: &Board, tenant: &TenantId, run: &LiveRun, sequences: RangeInclusive<u64>, text: &str) {
    for sequence in sequences {
        board.event_append(tenant, event(run, sequence, text));
    }
}

/// Opens a run that tells so many events.
async fn opened(board: &Board, tenant: &TenantId, events: u64) -> Arc<LiveRun> {
    let run = new_run(None);
    open(board, tenant, &run, false).await.unwrap();
    append(board, tenant, &run, 1..=events, "a");
    run
}

/// Reads all events after one: each as its number and the beginning of its text, the last one as
/// `.`.
async fn read(board: &Board, tenant: &TenantId, run: &LiveRun, after: u64) -> String {
    let read = board.event_read(tenant, run.summary.run_id, after, 1000).await.unwrap();
    show(&read)
}

fn show(events: &[Arc<RunEvent>]) -> String {
    let shown = events.iter().map(|event| match &event.payload {
        RunEventPayload::Agent(AgentEvent::MessageDelta { text, .. }) => {
            format!("{}{}", event.sequence, text.chars().take(4).collect::<String>())
        }
        payload if payload.is_terminal() => format!("{}.", event.sequence),
        payload => format!("{}?{}", event.sequence, payload.name()),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Waits until the value is the one that is wanted, for a machine that may stand still for seconds.
async fn until<T: PartialEq + std::fmt::Debug>(wanted: T, mut read: impl AsyncFnMut() -> T) {
    let mut last = None;
    let waited = tokio::time::timeout(Duration::from_mins(2), async {
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
