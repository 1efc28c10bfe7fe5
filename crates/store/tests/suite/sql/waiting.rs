//! Waiting runs are listed and counted until their calls are answered or have expired.

use agent::record::RunStatus;
use serde_json::json;
use store::Page;
use store::queue::{NewAnswer, NewQueuedRun};
use store::retention::RemovalFigures;
use store::runs::{Answerer, WaitingFilter};
use store::sessions::Commit;
use test_support::drafts::{run_id, tenant};
use values::ids::RunId;
use values::session::{OpenCall, hash_arguments};
use values::tenant::TenantId;

use super::queue::fixtures::{at, queued_run};
use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    waiting_runs_are_listed_until_their_calls_expire,
    an_answer_takes_a_run_from_the_list_unless_it_fails,
    the_measured_runs_are_read_unless_they_are_answered_and_no_others,
    a_sweep_takes_expired_runs_out_of_the_indexes,
);

/// An open call of a kind, and the second at which it expires.
type Call = (&'static str, i64);

fn open_call((kind, expires): &Call) -> OpenCall {
    let arguments = json!({"note": kind});
    let call = json!({
        "call_id": "c1", "kind": kind, "tool": "deploy", "arguments": arguments,
        "arguments_hash": hash_arguments(&arguments), "response_schema": {}, "expires_at": at(*expires),
    });
    serde_json::from_value(call).unwrap()
}

/// Makes the commit of a run that waits with these calls.
fn waiting_commit(fixture: &Fixture, agent: &str, calls: &[Call]) -> (Commit, RunId) {
    let mut commit = fixture.commit(None, &["question"]);
    let record = &mut commit.run.as_mut().unwrap().record;
    record.summary.status = RunStatus::Waiting;
    agent.clone_into(&mut record.summary.agent);
    record.open_calls = calls.iter().map(open_call).collect();
    let run_id = record.summary.run_id;
    (commit, run_id)
}

/// Commits a run that waits with these calls.
async fn waiting(fixture: &Fixture, agent: &str, calls: &[Call]) -> RunId {
    let (commit, run_id) = waiting_commit(fixture, agent, calls);
    fixture.publish(&commit).await;
    run_id
}

/// Accepts a run that answers the calls of another one.
async fn answer(fixture: &Fixture, run_id: RunId) {
    let is_fork = false;
    let answer = NewQueuedRun {
        answer: Some(NewAnswer { run_id, is_fork }),
        ..queued_run(&fixture.tenant)
    };
    fixture.enqueue(&answer).await;
}

fn filter(answerer: Answerer, now: i64) -> WaitingFilter {
    WaitingFilter {
        answerer,
        now: at(now),
        agent: None,
        thread: None,
    }
}

/// Returns the listed runs. Checks pages of one run, and counts.
async fn listed(fixture: &Fixture, filter: &WaitingFilter) -> Vec<RunId> {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let mut seen = Vec::new();
    let mut page = Page { before: None, limit: 1 };
    loop {
        let sizes = store.waiting_sizes(tenant_id, filter, page).await.unwrap();
        let Some((last, size)) = sizes.first().copied() else {
            break;
        };
        let runs = store.waiting_list(tenant_id, &[last]).await.unwrap();
        assert_eq!((sizes.len(), runs.len()), (1, 1));
        assert!(size > 0 && !runs[0].open_calls.is_empty(), "{runs:?}");
        seen.push(runs[0].summary.run_id);
        page.before = Some(last);
    }
    for most in [1, 10] {
        let count = store.waiting_count(tenant_id, filter, most).await.unwrap();
        assert_eq!(count as usize, seen.len().min(most as usize));
    }
    assert_eq!(store.waiting_count(&tenant("other"), filter, 10).await.unwrap(), 0);
    seen
}

async fn waiting_runs_are_listed_until_their_calls_expire(fixture: Fixture) {
    fixture.root(&["done"]).await;
    let person = waiting(&fixture, "a", &[("approval", 100)]).await;
    let both = waiting(&fixture, "a", &[("client", 100), ("approval", 20), ("input", 50)]).await;
    let client = waiting(&fixture, "b", &[("client", 50)]).await;
    for (answerer, now, expected) in [
        (Answerer::Person, 0, &[both, person][..]),
        (Answerer::Person, 49, &[both, person]),
        (Answerer::Person, 50, &[person]),
        (Answerer::Person, 100, &[]),
        (Answerer::Client, 0, &[client, both]),
        (Answerer::Client, 50, &[both]),
        (Answerer::Client, 100, &[]),
    ] {
        let filter = filter(answerer, now);
        assert_eq!(listed(&fixture, &filter).await, expected, "{filter:?}");
    }
    for (agent, expected) in [("b", &[client][..]), ("c", &[]), ("\u{0}", &[])] {
        let filter = WaitingFilter {
            agent: Some(agent.to_owned()),
            ..filter(Answerer::Client, 0)
        };
        assert_eq!(listed(&fixture, &filter).await, expected, "{agent:?}");
    }
}

async fn an_answer_takes_a_run_from_the_list_unless_it_fails(fixture: Fixture) {
    let run_id = waiting(&fixture, "a", &[("approval", 100)]).await;
    let filter = filter(Answerer::Person, 0);
    for fails in [true, false] {
        assert_eq!(listed(&fixture, &filter).await, [run_id]);
        answer(&fixture, run_id).await;
        assert_eq!(listed(&fixture, &filter).await, [] as [RunId; 0]);
        let leased = fixture.lease_one().await;
        if fails {
            fixture.fail(&leased).await;
        } else {
            fixture.complete(&leased).await;
        }
    }
    assert_eq!(listed(&fixture, &filter).await, [] as [RunId; 0]);
}

async fn the_measured_runs_are_read_unless_they_are_answered_and_no_others(fixture: Fixture) {
    let (store, filter) = (&fixture.store, filter(Answerer::Person, 0));
    let call: &[Call] = &[("approval", 100)];
    let oldest = waiting(&fixture, "a", call).await;
    let (late_commit, late) = waiting_commit(&fixture, "a", call);
    let answered = waiting(&fixture, "a", call).await;
    let newest = waiting(&fixture, "a", call).await;
    let page = Page { before: None, limit: 9 };
    let sizes = store.waiting_sizes(&fixture.tenant, &filter, page).await.unwrap();
    let measured: Vec<_> = sizes.into_iter().map(|(run_id, _)| run_id).collect();
    assert_eq!(measured, [newest, answered, oldest]);
    fixture.publish(&late_commit).await;
    answer(&fixture, answered).await;

    let read = async |tenant_id: &TenantId, run_ids: &[RunId]| {
        let runs = store.waiting_list(tenant_id, run_ids).await.unwrap();
        runs.iter().map(|run| run.summary.run_id).collect::<Vec<_>>()
    };
    assert_eq!(read(&fixture.tenant, &measured).await, [newest, oldest]);
    assert_eq!(listed(&fixture, &filter).await, [newest, late, oldest]);
    // More ids than one unit of the list has.
    let mut many: Vec<_> = (0..60).map(|_| run_id()).collect();
    many.push(oldest);
    assert_eq!(read(&fixture.tenant, &many).await, [oldest]);
    for nothing in [
        read(&fixture.tenant, &[]).await,
        read(&tenant("other"), &measured).await,
    ] {
        assert_eq!(nothing, [] as [RunId; 0]);
    }
}

async fn a_sweep_takes_expired_runs_out_of_the_indexes(fixture: Fixture) {
    let person = waiting(&fixture, "a", &[("approval", 100)]).await;
    let both = waiting(&fixture, "a", &[("client", 100), ("approval", 20)]).await;
    for kind in ["client", "input", "approval"] {
        waiting(&fixture, "a", &[(kind, 20)]).await;
    }
    let answered = waiting(&fixture, "a", &[("approval", 20)]).await;
    answer(&fixture, answered).await;
    let indexed = async || {
        let count = async |column: &str| {
            let indexed = format!("runs where status = 'waiting' and {column} is not null");
            fixture.count(&indexed).await
        };
        [count("person_until").await, count("client_until").await]
    };
    let swept = async |seconds: i64| {
        let removed = fixture.sweep(KEEP_ALL, at(seconds), 1).await;
        assert_eq!(removed, RemovalFigures::default());
        indexed().await
    };
    assert_eq!(indexed().await, [4, 2]);
    assert_eq!(swept(19).await, [4, 2]);
    assert_eq!(swept(20).await, [1, 1]);
    assert_eq!(listed(&fixture, &filter(Answerer::Person, 20)).await, [person]);
    assert_eq!(listed(&fixture, &filter(Answerer::Client, 20)).await, [both]);
    // Its calls are open again, and have expired meanwhile.
    let leased = fixture.lease_one().await;
    fixture.fail(&leased).await;
    assert_eq!(indexed().await, [2, 1]);
    assert_eq!(swept(20).await, [1, 1]);
    assert_eq!(swept(100).await, [0, 0]);
    assert_eq!(fixture.count("runs where status = 'waiting'").await, 6);
}
