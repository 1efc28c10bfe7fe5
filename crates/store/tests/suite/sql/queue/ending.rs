//! The ends of queued runs: the final record, and everything that is written and deleted with it,
//! in one transaction.

use std::sync::Arc;

use agent::record::{RunEvent, RunStatus};
use store::CommitError;
use store::runs::{Recorded, RunEnd};
use store::sessions::Commit;
use test_support::drafts::{run_end, run_id, run_record, session_id};

use super::fixtures::{commit_of, delivery, events, failed_end, journal, other_commit_of, steering};
use crate::fixtures::Fixture;
use crate::sql::commit::subagents::subagent;

on_both_engines!(
    a_commit_takes_its_run_out_of_the_queue,
    a_record_takes_its_run_out_of_the_queue,
    a_commit_whose_response_was_lost_returns_the_first_result,
    a_worker_that_lost_its_lease_ends_nothing,
    a_commit_that_fails_leaves_the_run_in_the_queue,
    a_light_commit_that_fails_sends_no_webhook,
    a_run_that_was_never_queued_sends_its_webhook,
);

const LEFT_BEHIND: [&str; 2] = ["run_queue", "run_journal"];

/// A run with a journal, events and a message, all of which another worker would need.
async fn run_at_work(fixture: &Fixture) -> store::queue::LeasedRun {
    let run = fixture.enqueue_new().await.summary.run_id;
    let leased = fixture.lease_one().await;
    assert!(
        fixture
            .store
            .progress_append(&leased.lease, &journal(1, 3), &[])
            .await
            .unwrap()
    );
    assert!(
        fixture
            .store
            .progress_append(&leased.lease, &[], &events(run, 1, 4))
            .await
            .unwrap()
    );
    fixture
        .store
        .message_insert(&fixture.tenant, run, &steering("a"))
        .await
        .unwrap();
    leased
}

fn with_extras(end: RunEnd, run: values::ids::RunId) -> RunEnd {
    RunEnd {
        events: events(run, 5, 7),
        deliveries: vec![delivery(), delivery()],
        ..end
    }
}

async fn all_events(fixture: &Fixture, run: values::ids::RunId) -> Vec<Arc<RunEvent>> {
    fixture.store.event_read(&fixture.tenant, run, 0, 100).await.unwrap()
}

async fn a_commit_takes_its_run_out_of_the_queue(fixture: Fixture) {
    let leased = run_at_work(&fixture).await;
    let run = leased.lease.run_id;
    let mut commit = commit_of(&fixture, &leased);
    commit.run = commit.run.map(|end| with_extras(end, run));
    commit.children = vec![subagent(&commit, commit.draft.session_id, None, &["child"])];
    let committed = fixture.store.session_commit(&commit).await.unwrap();
    assert_eq!(fixture.load(commit.draft.session_id).await, committed.session);
    let end = commit.run.unwrap();
    let stored = fixture.run(run).await;
    assert_eq!(stored, Some(end.record));
    assert_eq!(
        fixture.store.step_list(&fixture.tenant, run).await.unwrap(),
        Some(end.steps)
    );
    assert_eq!(all_events(&fixture, run).await, events(run, 1, 7));
    for table in LEFT_BEHIND {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
    let due = "webhook_deliveries where status = 'pending' and attempts = 0 and due_at = created_at";
    assert_eq!(fixture.counts([due, "sessions"]).await, [2, 2]);
}

async fn a_record_takes_its_run_out_of_the_queue(fixture: Fixture) {
    let leased = run_at_work(&fixture).await;
    let run = leased.lease.run_id;
    let end = with_extras(failed_end(&leased), run);
    for expected in [Recorded::Now, Recorded::Before] {
        assert_eq!(fixture.store.run_record(&fixture.tenant, &end).await.unwrap(), expected);
    }
    let stored = fixture.run(run).await;
    assert_eq!(stored, Some(end.record));
    assert_eq!(all_events(&fixture, run).await, events(run, 1, 7));
    for table in LEFT_BEHIND {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
    assert_eq!(fixture.count("webhook_deliveries").await, 2);
    let error = fixture
        .store
        .session_commit(&commit_of(&fixture, &leased))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::LeaseLost), "{error:?}");
}

async fn a_commit_whose_response_was_lost_returns_the_first_result(fixture: Fixture) {
    let leased = run_at_work(&fixture).await;
    let mut commit = commit_of(&fixture, &leased);
    commit.run = commit.run.map(|end| with_extras(end, leased.lease.run_id));
    let first = fixture.store.session_commit(&commit).await.unwrap();
    assert_eq!(fixture.store.session_commit(&commit).await.unwrap(), first);
    let error = fixture
        .store
        .session_commit(&other_commit_of(&fixture, &leased))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::LeaseLost), "{error:?}");
    let recorded = fixture.fail(&leased).await;
    assert_eq!(recorded, Recorded::Before);
    let found = fixture.run(leased.lease.run_id).await;
    assert_eq!(found, commit.run.map(|end| end.record));
    assert_eq!(fixture.counts(["sessions", "webhook_deliveries"]).await, [1, 2]);
}

async fn a_worker_that_lost_its_lease_ends_nothing(fixture: Fixture) {
    let first = run_at_work(&fixture).await;
    let second = fixture.lease_at(101, 1).await.remove(0);
    let mut commit = commit_of(&fixture, &first);
    commit.run = commit.run.map(|end| with_extras(end, first.lease.run_id));
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(matches!(error, CommitError::LeaseLost), "{error:?}");
    let end = with_extras(failed_end(&first), first.lease.run_id);
    assert_eq!(
        fixture.store.run_record(&fixture.tenant, &end).await.unwrap(),
        Recorded::LeaseLost
    );
    let rows = [
        "sessions",
        "history_segments",
        "webhook_deliveries",
        "run_queue",
        "run_journal",
        "run_events",
    ];
    let mut counts = Vec::new();
    for table in rows {
        counts.push(fixture.count(table).await);
    }
    assert_eq!(counts, [0, 0, 0, 1, 3, 1]);
    let found = fixture.run(first.lease.run_id).await;
    assert_eq!(found.unwrap().summary, second.summary);
    fixture.complete(&second).await;
}

async fn a_commit_that_fails_leaves_the_run_in_the_queue(fixture: Fixture) {
    let leased = run_at_work(&fixture).await;
    let run = leased.lease.run_id;
    let mut good = commit_of(&fixture, &leased);
    good.run = good.run.map(|end| with_extras(end, run));
    let mut bad: Commit = good.clone();
    let root = fixture.root(&["root"]).await;
    let mut child = subagent(&bad, bad.draft.session_id, None, &["child"]);
    child.session_id = root.head.session_id;
    bad.children = vec![child];
    fixture.store.session_commit(&bad).await.unwrap_err();
    let counts = [
        fixture.count("run_queue").await,
        fixture.count("run_journal").await,
        fixture.count("sessions").await,
        fixture.count("webhook_deliveries").await,
    ];
    assert_eq!(counts, [1, 3, 1, 0]);
    assert_eq!(all_events(&fixture, run).await, events(run, 1, 4));
    let found = fixture.run(run).await;
    assert_eq!(found.unwrap().summary, leased.summary);
    fixture.store.session_commit(&good).await.unwrap();
    assert_eq!(fixture.count("webhook_deliveries").await, 2);
    assert_eq!(all_events(&fixture, run).await, events(run, 1, 7));
}

async fn a_light_commit_that_fails_sends_no_webhook(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let mut commit = fixture.commit(None, &["question"]);
    let run = commit.draft.run_id.unwrap();
    commit.run = commit.run.map(|end| with_extras(end, run));
    let mut child = subagent(&commit, commit.draft.session_id, None, &["child"]);
    child.session_id = root.head.session_id;
    let bad = Commit {
        children: vec![child],
        ..commit.clone()
    };
    fixture.store.session_commit(&bad).await.unwrap_err();
    let left = fixture.run(run).await;
    assert_eq!((left, all_events(&fixture, run).await), (None, Vec::new()));
    assert_eq!(fixture.counts(["sessions", "webhook_deliveries"]).await, [1, 0]);
    fixture.store.session_commit(&commit).await.unwrap();
    assert_eq!(fixture.counts(["sessions", "webhook_deliveries"]).await, [2, 2]);
}

async fn a_run_that_was_never_queued_sends_its_webhook(fixture: Fixture) {
    let mut commit = fixture.commit(None, &["question"]);
    let run = commit.draft.run_id.unwrap();
    commit.run = commit.run.map(|end| with_extras(end, run));
    let first = fixture.store.session_commit(&commit).await.unwrap();
    assert_eq!(fixture.store.session_commit(&commit).await.unwrap(), first);
    assert_eq!(all_events(&fixture, run).await, events(run, 5, 7));
    let failed = run_record(run_id(), session_id(), RunStatus::Failed);
    let end = with_extras(run_end(failed, Vec::new()), run_id());
    for expected in [Recorded::Now, Recorded::Before] {
        assert_eq!(fixture.store.run_record(&fixture.tenant, &end).await.unwrap(), expected);
    }
    let found = fixture.run(end.record.summary.run_id).await;
    assert_eq!(found, Some(end.record));
    assert_eq!(fixture.count("webhook_deliveries").await, 4);
}
