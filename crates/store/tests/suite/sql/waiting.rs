//! Waiting runs are listed and counted until their calls are answered or have expired.

use agent::record::RunStatus;
use serde_json::json;
use store::Page;
use store::queue::{NewAnswer, NewQueuedRun};
use store::runs::{Answerer, WaitingFilter};
use test_support::drafts::tenant;
use values::ids::RunId;
use values::session::{OpenCall, hash_arguments};

use super::queue::fixtures::{at, queued_run};
use crate::fixtures::Fixture;

on_both_engines!(
    waiting_runs_are_listed_until_their_calls_expire,
    an_answer_takes_a_run_from_the_list_unless_it_fails,
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

/// Commits a run that waits with these calls.
async fn waiting(fixture: &Fixture, agent: &str, calls: &[Call]) -> RunId {
    let mut commit = fixture.commit(None, &["question"]);
    let record = &mut commit.run.as_mut().unwrap().record;
    record.summary.status = RunStatus::Waiting;
    agent.clone_into(&mut record.summary.agent);
    record.open_calls = calls.iter().map(open_call).collect();
    let run_id = record.summary.run_id;
    fixture.publish(&commit).await;
    run_id
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
        let runs = store.waiting_list(tenant_id, filter, page.before, last).await.unwrap();
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
        let is_fork = false;
        let answer = NewQueuedRun {
            answer: Some(NewAnswer { run_id, is_fork }),
            ..queued_run(&fixture.tenant)
        };
        fixture.enqueue(&answer).await;
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
