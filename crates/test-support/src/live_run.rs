//! A run as a board shows it.

use std::sync::Arc;

use agent::definition::Durability;
use agent::record::{RunMode, RunStatus, RunSummary};
use board::LiveRun;
use values::clock::{Clock as _, SystemClock};
use values::ids::{RunId, SessionId, UuidV7Source};
use values::json::Object;
use values::usage::Usage;

/// Makes a run that has just begun.
pub fn new_run(base: Option<SessionId>) -> Arc<LiveRun> {
    let now = SystemClock.now();
    Arc::new(LiveRun::begun(RunSummary {
        run_id: RunId::generate(&UuidV7Source),
        session_id: SessionId::generate(&UuidV7Source),
        publishes: true,
        base_session_id: base,
        agent: "demo".to_owned(),
        agent_version: None,
        model: "demo/scripted".parse().unwrap(),
        answered_by: None,
        mode: RunMode::Stream,
        durability: Durability::default(),
        thread: None,
        thread_moved: None,
        answer_run_id: None,
        attempts: 1,
        status: RunStatus::Running,
        stop_reason: None,
        usage: Usage::default(),
        step_count: 0,
        event_count: 0,
        error: None,
        metadata: Object::from_iter([("ticket".to_owned(), "A-1".into())]),
        created_by: None,
        created_at: now,
        started_at: Some(now),
        completed_at: None,
    }))
}
