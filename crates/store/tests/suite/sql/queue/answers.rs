//! Open calls of a run: of the runs that answer them, one is accepted.

use agent::record::{RunStatus, RunSummary};
use futures_util::future::join_all;
use store::queue::{Acceptance, IfBusy, LeasedRun, NewAnswer, NewQueuedRun};
use store::runs::RunEnd;
use values::ids::RunId;

use super::fixtures::{at, commit_of, end_of, key, queued_run, thread_run};
use crate::fixtures::Fixture;

on_both_engines!(
    of_many_answers_one_is_accepted,
    calls_are_open_again_if_their_answer_fails,
    a_repeated_answer_is_the_same_run,
);

/// Commits a run that waits.
async fn waiting(fixture: &Fixture) -> LeasedRun {
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    let leased = fixture.lease_one().await;
    let mut commit = commit_of(fixture, &leased);
    commit.run = Some(RunEnd {
        lease: Some(leased.lease.clone()),
        ..end_of(&leased.summary, RunStatus::Waiting)
    });
    fixture.store.session_commit(&commit).await.unwrap();
    leased
}

/// A run that answers another one.
fn answering(fixture: &Fixture, waiting: &LeasedRun, is_fork: bool) -> NewQueuedRun {
    let mut run = queued_run(&fixture.tenant);
    run.summary.base_session_id = Some(waiting.summary.session_id);
    run.answer = Some(NewAnswer {
        run_id: waiting.lease.run_id,
        is_fork,
    });
    run
}

async fn shown(fixture: &Fixture, run: &LeasedRun) -> (RunStatus, Option<RunId>) {
    let found = fixture.run(run.lease.run_id).await;
    let RunSummary {
        status, answer_run_id, ..
    } = found.unwrap().summary;
    (status, answer_run_id)
}

/// Finds the run whose calls a run answers.
async fn answered_by(fixture: &Fixture, by: RunId) -> Option<RunSummary> {
    let found = fixture.store.run_lookup_by_answer(&fixture.tenant, by);
    found.await.unwrap()
}

async fn of_many_answers_one_is_accepted(fixture: Fixture) {
    let asked = waiting(&fixture).await;
    assert_eq!(shown(&fixture, &asked).await, (RunStatus::Waiting, None));
    let mut runs: Vec<_> = (0..8).map(|_| answering(&fixture, &asked, false)).collect();
    for (index, run) in runs.iter_mut().enumerate().skip(4) {
        let on_thread = thread_run(&fixture.tenant, &format!("t{index}"), IfBusy::Reject);
        run.summary.thread = on_thread.summary.thread;
    }
    let answers = join_all(runs.iter().map(|run| fixture.store.run_accept(run))).await;
    let answers: Vec<Acceptance> = answers.into_iter().map(Result::unwrap).collect();
    let accepted = answers
        .iter()
        .position(|answer| matches!(answer, Acceptance::Accepted { .. }))
        .unwrap();
    let winner = runs[accepted].summary.run_id;
    let lost = answers.iter().filter(|answer| **answer == Acceptance::Answered(winner));
    assert_eq!(lost.count(), 7, "{answers:?}");
    assert_eq!(shown(&fixture, &asked).await, (RunStatus::Answered, Some(winner)));
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [2, 1]);
    let answered = fixture.store.run_answer(&fixture.tenant, asked.lease.run_id, winner);
    assert_eq!(answered.await.unwrap(), None);

    let fork = answering(&fixture, &asked, true);
    assert!(matches!(
        fixture.store.run_accept(&fork).await.unwrap(),
        Acceptance::Accepted { .. }
    ));
    assert_eq!(shown(&fixture, &asked).await, (RunStatus::Answered, Some(winner)));
    let answered = fixture.run(asked.lease.run_id).await.unwrap().summary;
    assert_eq!(answered_by(&fixture, winner).await, Some(answered));
    assert_eq!(answered_by(&fixture, fork.summary.run_id).await, None);
    let other = "other".parse().unwrap();
    assert_eq!(fixture.store.run_lookup_by_answer(&other, winner).await.unwrap(), None);
}

async fn calls_are_open_again_if_their_answer_fails(fixture: Fixture) {
    let asked = waiting(&fixture).await;
    for _ in 0..2 {
        let answer = answering(&fixture, &asked, false);
        fixture.enqueue(&answer).await;
        let by = answer.summary.run_id;
        assert_eq!(shown(&fixture, &asked).await, (RunStatus::Answered, Some(by)));
        let leased = fixture.lease_one().await;
        fixture.fail(&leased).await;
        assert_eq!(shown(&fixture, &asked).await, (RunStatus::Waiting, None));
        assert_eq!(answered_by(&fixture, by).await, None);
    }
    // Another run that begins at the session learns only then that it answers the calls.
    let late = NewQueuedRun {
        answer: None,
        ..answering(&fixture, &asked, false)
    };
    fixture.enqueue(&late).await;
    let by = late.summary.run_id;
    let answered = fixture.store.run_answer(&fixture.tenant, asked.lease.run_id, by);
    assert_eq!(answered.await.unwrap(), None);
    let refused = fixture.store.run_accept(&answering(&fixture, &asked, false)).await;
    assert_eq!(refused.unwrap(), Acceptance::Answered(by));
    let leased = fixture.lease_one().await;
    fixture.complete(&leased).await;
    assert_eq!(shown(&fixture, &asked).await, (RunStatus::Answered, Some(by)));
}

async fn a_repeated_answer_is_the_same_run(fixture: Fixture) {
    let asked = waiting(&fixture).await;
    let mut first = answering(&fixture, &asked, false);
    first.idempotency = Some(key("k", "body", at(100)));
    fixture.enqueue(&first).await;
    // The response to the first attempt was lost.
    let again = fixture.store.run_accept(&first).await.unwrap();
    assert!(matches!(again, Acceptance::Accepted { .. }), "{again:?}");
    let other = NewQueuedRun {
        idempotency: first.idempotency.clone(),
        ..answering(&fixture, &asked, false)
    };
    match fixture.store.run_accept(&other).await.unwrap() {
        Acceptance::Known(known) => assert_eq!(known.resource_id, first.summary.run_id.as_uuid()),
        refused => panic!("{refused:?}"),
    }
}
