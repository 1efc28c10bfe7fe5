//! Runs on threads: which are refused, which wait, which are interrupted, and where the thread
//! points to at the end.

use agent::record::{RunControl, RunStatus};
use futures_util::future::join_all;
use store::Page;
use store::queue::{Acceptance, IfBusy, LeasedRun, NewQueuedRun};
use store::retention::SessionRemoval;
use store::runs::RunFilter;
use store::threads::{ThreadDelete, ThreadExpectation, ThreadPut, ThreadStart};
use test_support::drafts::{now, session_id, tenant};
use values::ids::{RunId, SessionId};

use super::fixtures::{commit_of, ids, queued_run, terms, thread_name, thread_run, thread_session, worker};
use crate::fixtures::Fixture;

on_both_engines!(
    a_run_makes_its_thread_and_its_commit_moves_it,
    a_busy_thread_refuses_a_run,
    runs_wait_for_their_thread_in_the_order_of_their_arrival,
    a_run_may_stop_the_active_one,
    a_fork_waits_for_no_run_and_does_not_move_the_thread,
    a_cancelled_run_need_not_wait_for_its_thread,
    the_start_on_a_thread_names_the_agent_of_the_last_run_ahead,
    only_its_active_run_moves_a_thread,
    a_move_that_races_with_a_run_comes_before_it_or_is_refused,
    racing_runs_on_a_thread_go_one_by_one,
    a_run_on_a_thread_may_choose_where_it_starts,
    the_chosen_start_of_a_waiting_run_is_retained,
    a_chosen_start_that_is_gone_is_refused,
);

async fn enqueue(fixture: &Fixture, if_busy: IfBusy) -> (RunId, Acceptance) {
    let run = thread_run(&fixture.tenant, "t", if_busy);
    (run.summary.run_id, fixture.store.run_accept(&run).await.unwrap())
}

fn accepted(interrupted: Option<RunId>) -> Acceptance {
    Acceptance::Accepted {
        lease: None,
        interrupted,
    }
}

async fn a_run_makes_its_thread_and_its_commit_moves_it(fixture: Fixture) {
    let (run, answer) = enqueue(&fixture, IfBusy::Reject).await;
    assert_eq!(answer, accepted(None));
    assert_eq!(thread_session(&fixture, "t").await, None);
    let leased = fixture.lease_one().await;
    assert!(leased.moves_thread);
    let commit = commit_of(&fixture, &leased);
    let committed = fixture.store.session_commit(&commit).await.unwrap();
    assert_eq!(fixture.store.session_commit(&commit).await.unwrap(), committed);
    assert_eq!(thread_session(&fixture, "t").await, Some(leased.summary.session_id));
    let filter = RunFilter {
        thread: Some(thread_name("t")),
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: 10,
    };
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    let listed = fixture.store.run_list(&fixture.tenant, &filter, page).await.unwrap();
    assert_eq!(listed.iter().map(|run| run.run_id).collect::<Vec<_>>(), [run]);
}

async fn a_busy_thread_refuses_a_run(fixture: Fixture) {
    let (active, _) = enqueue(&fixture, IfBusy::Reject).await;
    let (_, answer) = enqueue(&fixture, IfBusy::Reject).await;
    assert_eq!(answer, Acceptance::ThreadBusy(active));
    let leased = fixture.lease_one().await;
    let (_, answer) = enqueue(&fixture, IfBusy::Reject).await;
    assert_eq!(answer, Acceptance::ThreadBusy(active));
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [1, 1]);
    for (name, thread) in [("acme", "other"), ("other", "t")] {
        fixture
            .enqueue(&thread_run(&tenant(name), thread, IfBusy::Reject))
            .await;
    }
    fixture.fail(&leased).await;
    let (_, answer) = enqueue(&fixture, IfBusy::Reject).await;
    assert_eq!(answer, accepted(None));
}

async fn runs_wait_for_their_thread_in_the_order_of_their_arrival(fixture: Fixture) {
    let (first, _) = enqueue(&fixture, IfBusy::Queue).await;
    let mut waiting = Vec::new();
    for priority in [0, 9, 0] {
        let run = NewQueuedRun {
            priority,
            lease: Some(terms(worker(), 0, 10)),
            ..thread_run(&fixture.tenant, "t", IfBusy::Queue)
        };
        assert_eq!(
            fixture.store.run_accept(&run).await.unwrap(),
            accepted(None),
            "it is not leased: it waits"
        );
        let found = fixture.run(run.summary.run_id).await.unwrap();
        assert_eq!((found.summary.status, found.summary.attempts), (RunStatus::Queued, 0));
        assert_eq!(found.summary, run.summary);
        waiting.push(run.summary.run_id);
    }
    let mut leased = fixture.lease_one().await;
    assert_eq!(leased.lease.run_id, first);
    for next in waiting {
        assert_eq!(fixture.lease(10).await, []);
        if next.as_uuid().as_u128() % 2 == 0 {
            fixture.fail(&leased).await;
        } else {
            fixture.complete(&leased).await;
        }
        leased = fixture.lease_one().await;
        assert_eq!(leased.lease.run_id, next);
    }
}

async fn a_run_may_stop_the_active_one(fixture: Fixture) {
    let (first, _) = enqueue(&fixture, IfBusy::Interrupt).await;
    let active = fixture.lease_one().await;
    assert_eq!(active.control, None);
    let (second, answer) = enqueue(&fixture, IfBusy::Interrupt).await;
    assert_eq!(answer, accepted(Some(first)));
    let renewed = fixture.renew(&active.lease, super::fixtures::at(100)).await;
    assert_eq!(renewed[0].control, Some(RunControl::Stop));
    // A cancellation stays one.
    fixture
        .store
        .run_control(&fixture.tenant, first, RunControl::Cancel)
        .await
        .unwrap();
    let (third, answer) = enqueue(&fixture, IfBusy::Interrupt).await;
    assert_eq!(answer, accepted(Some(first)));
    let renewed = fixture.renew(&active.lease, super::fixtures::at(100)).await;
    assert_eq!(renewed[0].control, Some(RunControl::Cancel));
    fixture.fail(&active).await;
    let next = fixture.lease_one().await;
    assert_eq!((next.lease.run_id, next.control), (second, None));
    fixture.fail(&next).await;
    assert_eq!(fixture.lease_one().await.lease.run_id, third);
}

async fn a_fork_waits_for_no_run_and_does_not_move_the_thread(fixture: Fixture) {
    let (active, _) = enqueue(&fixture, IfBusy::Reject).await;
    let (fork, answer) = enqueue(&fixture, IfBusy::Fork).await;
    assert_eq!(answer, accepted(None));
    let leased = fixture.lease(10).await;
    assert_eq!(ids(&leased), [active, fork]);
    assert!(leased[0].moves_thread && !leased[1].moves_thread);
    let (waiting, _) = enqueue(&fixture, IfBusy::Queue).await;
    fixture.complete(&leased[1]).await;
    assert_eq!(thread_session(&fixture, "t").await, None);
    assert_eq!(fixture.lease(10).await, [], "the active run is still there");
    fixture.complete(&leased[0]).await;
    assert_eq!(thread_session(&fixture, "t").await, Some(leased[0].summary.session_id));
    assert_eq!(fixture.lease_one().await.lease.run_id, waiting);
    // A thread on which only a fork is at work is not busy.
    let alone = thread_run(&fixture.tenant, "u", IfBusy::Fork);
    fixture.enqueue(&alone).await;
    fixture.enqueue(&thread_run(&fixture.tenant, "u", IfBusy::Reject)).await;
}

async fn a_cancelled_run_need_not_wait_for_its_thread(fixture: Fixture) {
    let (active, _) = enqueue(&fixture, IfBusy::Queue).await;
    let active_run = fixture.lease_one().await;
    let (cancelled, _) = enqueue(&fixture, IfBusy::Queue).await;
    let (stopped, _) = enqueue(&fixture, IfBusy::Queue).await;
    let control = async |run, wanted| fixture.store.run_control(&fixture.tenant, run, wanted).await.unwrap();
    assert!(control(stopped, RunControl::Stop).await);
    assert_eq!(fixture.lease(10).await, [], "what it has is published in its turn");
    assert!(control(cancelled, RunControl::Cancel).await);
    let leased: LeasedRun = fixture.lease_one().await;
    assert_eq!(
        (leased.lease.run_id, leased.control),
        (cancelled, Some(RunControl::Cancel))
    );
    fixture.fail(&leased).await;
    assert_eq!(fixture.lease(10).await, [], "{active} is still active");
    fixture.fail(&active_run).await;
    assert_eq!(fixture.lease_one().await.lease.run_id, stopped);
}

async fn the_start_on_a_thread_names_the_agent_of_the_last_run_ahead(fixture: Fixture) {
    let name = thread_name("t");
    let start = async || fixture.store.thread_start(&fixture.tenant, &name).await.unwrap();
    let ahead = |agent: &str| ThreadStart {
        session_id: None,
        agent_ahead: Some(agent.to_owned()),
    };
    assert_eq!(start().await, ThreadStart::default());
    let mut runs = Vec::new();
    for (agent, if_busy) in [("one", IfBusy::Queue), ("two", IfBusy::Queue), ("aside", IfBusy::Fork)] {
        let mut run = thread_run(&fixture.tenant, "t", if_busy);
        agent.clone_into(&mut run.summary.agent);
        fixture.enqueue(&run).await;
        runs.push(run.summary.run_id);
    }
    for (tenant, thread) in [(fixture.tenant.clone(), "other"), (tenant("other"), "t")] {
        fixture.enqueue(&thread_run(&tenant, thread, IfBusy::Queue)).await;
    }
    assert_eq!(start().await, ahead("two"), "a fork moves nothing");
    let cancelling = |run| fixture.store.run_control(&fixture.tenant, run, RunControl::Cancel);
    assert!(cancelling(runs[1]).await.unwrap());
    assert_eq!(start().await, ahead("one"), "who is cancelled publishes nothing");
    let stopping = fixture.store.run_control(&fixture.tenant, runs[0], RunControl::Stop);
    assert!(stopping.await.unwrap());
    assert_eq!(start().await, ahead("one"), "who is stopped does");
    let leased = fixture.lease(10).await;
    let first = leased.iter().find(|leased| leased.lease.run_id == runs[0]).unwrap();
    assert_eq!(start().await, ahead("one"));
    let committing = commit_of(&fixture, first);
    fixture.store.session_commit(&committing).await.unwrap();
    let published = ThreadStart {
        session_id: Some(first.summary.session_id),
        agent_ahead: None,
    };
    assert_eq!(start().await, published);
}

async fn only_its_active_run_moves_a_thread(fixture: Fixture) {
    let elsewhere = fixture.root(&["elsewhere"]).await.head.session_id;
    let (name, store) = (thread_name("t"), &fixture.store);
    let (active, _) = enqueue(&fixture, IfBusy::Reject).await;
    let (waiting, _) = enqueue(&fixture, IfBusy::Queue).await;
    let refused = async |run: RunId| {
        for expected in [ThreadExpectation::Anything, ThreadExpectation::At(None)] {
            let put = store.thread_put(&fixture.tenant, &name, elsewhere, expected, now());
            assert_eq!(put.await.unwrap(), ThreadPut::Busy(run));
        }
        let deleted = store.thread_delete(&fixture.tenant, &name).await.unwrap();
        assert_eq!(deleted, ThreadDelete::Busy(run));
        assert_eq!(thread_session(&fixture, "t").await, None);
    };
    refused(active).await;
    let leased = fixture.lease_one().await;
    refused(active).await;
    fixture.fail(&leased).await;
    refused(waiting).await;
    let leased = fixture.lease_one().await;
    store.session_commit(&commit_of(&fixture, &leased)).await.unwrap();
    assert_eq!(thread_session(&fixture, "t").await, Some(leased.summary.session_id));
    enqueue(&fixture, IfBusy::Fork).await;
    let put = store.thread_put(&fixture.tenant, &name, elsewhere, ThreadExpectation::Anything, now());
    assert!(
        matches!(put.await.unwrap(), ThreadPut::Moved(_)),
        "a fork moves nothing"
    );
    let deleted = store.thread_delete(&fixture.tenant, &name).await.unwrap();
    assert_eq!(deleted, ThreadDelete::Deleted);
}

async fn a_move_that_races_with_a_run_comes_before_it_or_is_refused(fixture: Fixture) {
    let elsewhere = fixture.root(&["elsewhere"]).await.head.session_id;
    for round in 0..24 {
        let name = thread_name(&format!("t{round}"));
        let mut run = NewQueuedRun {
            lease: Some(terms(worker(), 0, 10)),
            ..thread_run(&fixture.tenant, name.as_str(), IfBusy::Reject)
        };
        // A thread that exists and a new one have different locks.
        if round % 2 == 0 {
            let root = fixture.root(&["root"]).await.head.session_id;
            fixture.move_thread(&name, root).await;
            run.summary.base_session_id = Some(root);
        }
        let put = fixture
            .store
            .thread_put(&fixture.tenant, &name, elsewhere, ThreadExpectation::Anything, now());
        let (accepted, put) = tokio::join!(fixture.store.run_accept(&run), put);
        let Acceptance::Accepted { lease, .. } = accepted.unwrap() else {
            panic!()
        };
        match put.unwrap() {
            ThreadPut::Moved(_) => assert_eq!(lease, None, "the run must begin from where the thread is now"),
            refused => assert_eq!(refused, ThreadPut::Busy(run.summary.run_id)),
        }
        if lease.is_none() {
            let leased = fixture.lease_one().await;
            assert_eq!(leased.summary.base_session_id, Some(elsewhere));
        }
    }
}

/// A run on the thread `t` that starts from a session, or from none.
fn starting_from(fixture: &Fixture, base: Option<SessionId>, if_busy: IfBusy) -> NewQueuedRun {
    let mut run = thread_run(&fixture.tenant, "t", if_busy);
    run.summary.base_session_id = base;
    run.chooses_base = true;
    run
}

async fn a_run_on_a_thread_may_choose_where_it_starts(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let tip = fixture.child(&root, &["tip"]).await.head.session_id;
    let root = root.head.session_id;
    for (round, base) in [Some(root), None].into_iter().enumerate() {
        for lease in [None, Some(terms(worker(), 0, 100))] {
            fixture.move_thread(&thread_name("t"), tip).await;
            let run = NewQueuedRun {
                lease,
                ..starting_from(&fixture, base, IfBusy::Reject)
            };
            let is_leased = fixture.enqueue(&run).await.is_some();
            assert_eq!(is_leased, lease.is_some(), "{round}");
            let accepted = fixture.run(run.summary.run_id).await.unwrap();
            assert_eq!(accepted.summary.base_session_id, base);
            // A lease that was given at once has expired by then.
            let leased = fixture.lease_at(200, 10).await.remove(0);
            assert_eq!(leased.summary.base_session_id, base);
            assert_eq!(thread_session(&fixture, "t").await, Some(tip));
            fixture.complete(&leased).await;
            assert_eq!(thread_session(&fixture, "t").await, Some(leased.summary.session_id));
        }
    }
}

async fn the_chosen_start_of_a_waiting_run_is_retained(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    let (active, _) = enqueue(&fixture, IfBusy::Reject).await;
    let waiting = starting_from(&fixture, Some(root), IfBusy::Queue);
    assert_eq!(fixture.enqueue(&waiting).await, None);
    assert!(matches!(fixture.remove(root).await, SessionRemoval::InUse));
    let leased = fixture.lease_one().await;
    assert_eq!(leased.lease.run_id, active);
    fixture.complete(&leased).await;
    let leased = fixture.lease_one().await;
    assert_eq!(leased.lease.run_id, waiting.summary.run_id);
    assert_eq!(leased.summary.base_session_id, Some(root));
}

async fn a_chosen_start_that_is_gone_is_refused(fixture: Fixture) {
    let gone = session_id();
    let run = starting_from(&fixture, Some(gone), IfBusy::Reject);
    let answer = fixture.store.run_accept(&run).await.unwrap();
    assert_eq!(answer, Acceptance::MissingBase(gone));
    assert_eq!(fixture.counts(["runs", "run_queue", "threads"]).await, [0, 0, 0]);
}

async fn racing_runs_on_a_thread_go_one_by_one(fixture: Fixture) {
    let runs: Vec<NewQueuedRun> = (0..16)
        .map(|_| thread_run(&fixture.tenant, "t", IfBusy::Queue))
        .collect();
    let (first, second) = runs.split_at(8);
    for answer in join_all(first.iter().map(|run| fixture.store.run_accept(run))).await {
        assert_eq!(answer.unwrap(), accepted(None));
    }
    // Ends and arrivals race. An end must see each arrival, or the last run would wait for ever.
    let arriving = async {
        for run in second {
            assert_eq!(fixture.store.run_accept(run).await.unwrap(), accepted(None));
        }
    };
    let ending = async {
        for _ in 0..8 {
            let leased = fixture.lease(10).await;
            assert_eq!(leased.len(), 1);
            fixture.fail(&leased[0]).await;
        }
    };
    tokio::join!(arriving, ending);
    for left in (0..8).rev() {
        let leased = fixture.lease_one().await;
        fixture.fail(&leased).await;
        assert_eq!(fixture.count("run_queue").await, left);
    }
}
