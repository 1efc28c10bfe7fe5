//! Runs to enqueue, workers and times.

use std::sync::Arc;

use agent::AgentEvent;
use agent::journal::JournalEntry;
use agent::ports::WebhookEvent;
use agent::record::{
    NewDelivery, RunEvent, RunEventPayload, RunMode, RunStatus, RunSummary, SteeringMessage, ThreadName,
};
use agent::state::StopReason;
use chrono::TimeDelta;
use serde_json::json;
use store::queue::{
    Acceptance, IdempotencyKey, IfBusy, JournalRecord, Lease, LeaseLimits, LeaseTerms, LeasedRun, NewQueuedRun,
};
use store::runs::{Recorded, RunEnd};
use store::sessions::{Commit, Committed, ThreadMove};
use test_support::drafts::{now, object, run_end, run_id, run_record, session_id, step};
use values::clock::Timestamp;
use values::ids::{DeliveryId, MessageId, RunId, SessionId, UuidV7Source, WorkerId};
use values::message::{Message, Role};
use values::session::hash_definition;
use values::tenant::TenantId;
use values::usage::Usage;

use crate::fixtures::Fixture;

/// A time so many seconds after an instant that is the same for all tests.
pub(crate) fn at(seconds: i64) -> Timestamp {
    "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + TimeDelta::seconds(seconds)
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::generate(&UuidV7Source)
}

/// Terms of a lease from one time to another.
pub(crate) fn terms(worker: WorkerId, from: i64, until: i64) -> LeaseTerms {
    LeaseTerms {
        worker,
        now: at(from),
        until: at(until),
    }
}

/// That many runs, suspect ones included.
pub(crate) fn all(limit: u32) -> LeaseLimits {
    LeaseLimits {
        runs: limit,
        suspects: limit,
    }
}

/// A run of a tenant that waits.
pub(crate) fn queued_run(tenant: &TenantId) -> NewQueuedRun {
    NewQueuedRun {
        tenant: tenant.clone(),
        summary: RunSummary {
            mode: RunMode::Async,
            status: RunStatus::Queued,
            stop_reason: None,
            usage: Usage::default(),
            step_count: 0,
            event_count: 0,
            attempts: 0,
            created_at: at(-1),
            started_at: None,
            completed_at: None,
            ..run_record(run_id(), session_id(), RunStatus::Queued).summary
        },
        echo: Some(Arc::new(object(json!({"store": true})))),
        request: r#"{"input":"hi \u0000"}"#.to_owned(),
        priority: 0,
        level: 0,
        max_waiting: None,
        if_busy: IfBusy::Reject,
        chooses_base: false,
        answer: None,
        idempotency: None,
        lease: None,
    }
}

/// A run on a thread.
pub(crate) fn thread_run(tenant: &TenantId, thread: &str, if_busy: IfBusy) -> NewQueuedRun {
    let mut run = queued_run(tenant);
    run.summary.thread = Some(thread_name(thread));
    run.if_busy = if_busy;
    run
}

pub(crate) fn thread_name(name: &str) -> ThreadName {
    name.parse().unwrap()
}

pub(crate) fn key(name: &str, body: &str, expires_at: Timestamp) -> IdempotencyKey {
    IdempotencyKey {
        key: name.to_owned(),
        digest: hash_definition(body.as_bytes()),
        claimed_at: at(-1),
        expires_at,
    }
}

impl Fixture {
    /// Puts a run into the queue, which must accept it.
    pub(crate) async fn enqueue(&self, run: &NewQueuedRun) -> Option<Lease> {
        match self.store.run_accept(run).await.unwrap() {
            Acceptance::Accepted { lease, .. } => lease,
            other => panic!("{other:?}"),
        }
    }

    /// Puts a new run into the queue.
    pub(crate) async fn enqueue_new(&self) -> NewQueuedRun {
        let run = queued_run(&self.tenant);
        assert_eq!(self.enqueue(&run).await, None);
        run
    }

    /// Leases runs until the time is 100.
    pub(crate) async fn lease(&self, limit: u32) -> Vec<LeasedRun> {
        self.lease_at(0, limit).await
    }

    /// Leases runs at a time, for 100 seconds.
    pub(crate) async fn lease_at(&self, now: i64, limit: u32) -> Vec<LeasedRun> {
        let terms = terms(worker(), now, now + 100);
        self.store.run_lease(&terms, all(limit)).await.unwrap()
    }

    /// Records that a leased run failed.
    pub(crate) async fn fail(&self, leased: &LeasedRun) -> Recorded {
        self.store.run_record(&self.tenant, &failed_end(leased)).await.unwrap()
    }

    /// Commits a leased run.
    pub(crate) async fn complete(&self, leased: &LeasedRun) -> Committed {
        self.store.session_commit(&commit_of(self, leased)).await.unwrap()
    }

    /// Leases the only run that can be leased.
    pub(crate) async fn lease_one(&self) -> LeasedRun {
        let mut leased = self.lease(10).await;
        assert_eq!(leased.len(), 1);
        leased.remove(0)
    }
}

pub(crate) fn ids(runs: &[LeasedRun]) -> Vec<RunId> {
    runs.iter().map(|run| run.lease.run_id).collect()
}

/// The end of a leased run that failed.
pub(crate) fn failed_end(leased: &LeasedRun) -> RunEnd {
    RunEnd {
        lease: Some(leased.lease.clone()),
        ..end_of(&leased.summary, RunStatus::Failed)
    }
}

pub(crate) fn end_of(summary: &RunSummary, status: RunStatus) -> RunEnd {
    let mut record = run_record(summary.run_id, summary.session_id, status);
    record.summary = RunSummary {
        status,
        stop_reason: Some(StopReason::Completed),
        step_count: 1,
        event_count: 9,
        completed_at: Some(now()),
        usage: record.summary.usage,
        ..summary.clone()
    };
    run_end(record, vec![step(1)])
}

/// The commit of a leased run, which gives its thread a first session if it is on one.
pub(crate) fn commit_of(fixture: &Fixture, leased: &LeasedRun) -> Commit {
    let mut commit = fixture.commit(None, &["question", "answer"]);
    commit.tenant = leased.lease.tenant.clone();
    commit.draft.run_id = Some(leased.lease.run_id);
    commit.draft.session_id = leased.summary.session_id;
    let thread = leased.summary.thread.clone().filter(|_| leased.moves_thread);
    commit.thread = thread.map(ThreadMove::at_end);
    commit.run = Some(RunEnd {
        lease: Some(leased.lease.clone()),
        ..end_of(&leased.summary, RunStatus::Completed)
    });
    commit
}

/// A commit that publishes another session, as another attempt at the same run would.
pub(crate) fn other_commit_of(fixture: &Fixture, leased: &LeasedRun) -> Commit {
    let mut commit = commit_of(fixture, leased);
    commit.draft.history = commit
        .draft
        .history
        .with_messages([test_support::drafts::user("another")]);
    commit
}

pub(crate) fn events(run_id: RunId, from: u64, to: u64) -> Vec<Arc<RunEvent>> {
    (from..=to)
        .map(|sequence| {
            let text = format!("word {sequence} \u{0}");
            Arc::new(RunEvent {
                sequence,
                run_id,
                time: at(i64::try_from(sequence).unwrap()),
                payload: RunEventPayload::Agent(AgentEvent::MessageDelta {
                    step_number: 1,
                    text,
                    refusal: false,
                }),
            })
        })
        .collect()
}

pub(crate) fn journal(from: u64, to: u64) -> Vec<JournalRecord> {
    (from..=to)
        .map(|sequence| JournalRecord {
            sequence,
            scope: if sequence % 2 == 0 { "call-1" } else { "" }.to_owned(),
            entry: JournalEntry::CallBegun {
                index: usize::try_from(sequence).unwrap(),
            },
            tree: None,
        })
        .collect()
}

pub(crate) fn steering(key: &str) -> SteeringMessage {
    let id = MessageId::generate(&UuidV7Source);
    SteeringMessage {
        key: key.to_owned(),
        message: Message::text(id, Role::User, format!("about {key} \u{0}"), now()),
    }
}

pub(crate) fn delivery() -> NewDelivery {
    NewDelivery {
        delivery_id: DeliveryId::generate(&UuidV7Source),
        event: WebhookEvent::Completed,
        url: "https://example.org/hook".to_owned(),
        secret: Some("main".to_owned()),
        body: r#"{"type":"run.completed"}"#.to_owned(),
        trace: None,
        created_at: now(),
    }
}

/// The session that a thread points to; the thread must exist.
pub(crate) async fn thread_session(fixture: &Fixture, name: &str) -> Option<SessionId> {
    let name = thread_name(name);
    let thread = fixture.store.thread_lookup(&fixture.tenant, &name).await.unwrap();
    thread.unwrap().session_id
}
