//! Accepting runs: the record, the slot in the queue and the idempotency key.

use agent::record::{RunRecord, RunStatus, RunSummary};
use futures_util::future::join_all;
use store::Page;
use store::queue::{Acceptance, IdempotencyKey, KnownRequest, Lease, LeaseTerms, NewQueuedRun};
use store::runs::{Recorded, RunFilter};
use test_support::drafts::{run_end, session_id, tenant};

use super::fixtures::{all, at, key, queued_run, terms, worker};
use crate::fixtures::Fixture;

on_both_engines!(
    an_accepted_run_can_be_read,
    a_run_may_be_leased_as_it_is_accepted,
    a_repeated_attempt_finds_the_first_one_done,
    what_has_ended_is_not_accepted_again,
    a_key_stands_for_one_run_until_it_expires,
    racing_requests_of_a_key_make_one_run,
    a_key_can_be_claimed_for_anything,
    the_queue_is_counted_up_to_a_limit,
);

async fn an_accepted_run_can_be_read(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let (store, tenant_id, summary) = (&fixture.store, &fixture.tenant, &run.summary);
    let record = RunRecord {
        echo: run.echo.clone(),
        ..RunRecord::without_output(summary.clone())
    };
    assert_eq!(store.run_lookup(tenant_id, summary.run_id).await.unwrap(), Some(record));
    let by_session = store
        .run_lookup_by_session(tenant_id, summary.session_id)
        .await
        .unwrap();
    assert_eq!(by_session.as_ref(), Some(summary));
    let page = Page {
        before: None,
        limit: 10,
    };
    let listed = store.run_list(tenant_id, &RunFilter::default(), page).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(summary));
    assert_eq!(
        store.step_list(tenant_id, summary.run_id).await.unwrap(),
        Some(Vec::new())
    );
    assert_eq!(store.run_lookup(&tenant("other"), summary.run_id).await.unwrap(), None);
}

async fn a_run_may_be_leased_as_it_is_accepted(fixture: Fixture) {
    let run = NewQueuedRun {
        lease: Some(terms(worker(), 0, 30)),
        ..queued_run(&fixture.tenant)
    };
    let lease = fixture.enqueue(&run).await.unwrap();
    assert_eq!(lease.run_id, run.summary.run_id);
    assert_eq!(fixture.lease_at(29, 10).await, []);
    let expected = RunSummary {
        status: RunStatus::Running,
        attempts: 1,
        started_at: Some(at(0)),
        ..run.summary.clone()
    };
    let found = fixture.run(lease.run_id).await;
    assert_eq!(found.unwrap().summary, expected);
    let taken = &fixture.lease_at(31, 10).await[0];
    assert_eq!((taken.lease.fence > lease.fence, taken.is_taken_over), (true, true));
}

async fn a_repeated_attempt_finds_the_first_one_done(fixture: Fixture) {
    let leased = NewQueuedRun {
        lease: Some(terms(worker(), 0, 30)),
        ..queued_run(&fixture.tenant)
    };
    let keyed = NewQueuedRun {
        idempotency: Some(key("a", "body", at(1000))),
        ..queued_run(&fixture.tenant)
    };
    for run in [&leased, &keyed, &queued_run(&fixture.tenant)] {
        let first = fixture.store.run_accept(run).await.unwrap();
        assert!(matches!(first, Acceptance::Accepted { .. }), "{first:?}");
        assert_eq!(fixture.store.run_accept(run).await.unwrap(), first);
    }
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [3, 3]);
    // A repeated request that comes after another lease of the run does not get that lease, not
    // even in this process.
    let again = LeaseTerms {
        worker: leased.lease.unwrap().worker,
        ..terms(worker(), 40, 50)
    };
    assert_eq!(fixture.store.run_lease(&again, all(1)).await.unwrap().len(), 1);
    assert_eq!(fixture.enqueue(&leased).await, None);
}

async fn what_has_ended_is_not_accepted_again(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let leased = fixture.lease_one().await;
    let end = super::fixtures::failed_end(&leased);
    assert_eq!(
        fixture.store.run_record(&fixture.tenant, &end).await.unwrap(),
        Recorded::Now
    );
    let error = fixture.store.run_accept(&run).await.unwrap_err();
    assert!(!error.is_transient(), "{error:?}");
    let mut other = queued_run(&fixture.tenant);
    other.summary.session_id = run.summary.session_id;
    fixture.store.run_accept(&other).await.unwrap_err();
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [1, 0]);
    // A run that was never in the queue has its id for itself, too.
    let light = RunRecord::without_output(queued_run(&fixture.tenant).summary);
    let light = run_end(light, Vec::new());
    fixture.store.run_record(&fixture.tenant, &light).await.unwrap();
    let again = NewQueuedRun {
        summary: RunSummary {
            session_id: session_id(),
            ..light.record.summary
        },
        ..queued_run(&fixture.tenant)
    };
    fixture.store.run_accept(&again).await.unwrap_err();
    assert_eq!(fixture.count("run_queue").await, 0);
}

async fn a_key_stands_for_one_run_until_it_expires(fixture: Fixture) {
    let keyed = |body: &str, now: i64, tenant_name: &str| {
        let mut run = queued_run(&tenant(tenant_name));
        run.idempotency = Some(IdempotencyKey {
            claimed_at: at(now),
            ..key("a", body, at(now + 10))
        });
        run
    };
    let first = keyed("body", 0, "acme");
    fixture.enqueue(&first).await;
    let known = |run: &NewQueuedRun| KnownRequest {
        resource_id: run.summary.run_id.as_uuid(),
        digest: run.idempotency.as_ref().unwrap().digest,
    };
    for body in ["body", "another"] {
        let answer = fixture.store.run_accept(&keyed(body, 9, "acme")).await.unwrap();
        assert_eq!(answer, Acceptance::Known(known(&first)), "{body}");
    }
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [1, 1]);
    fixture.enqueue(&keyed("body", 9, "other")).await;
    let second = keyed("another", 10, "acme");
    fixture.enqueue(&second).await;
    let answer = fixture.store.run_accept(&keyed("another", 19, "acme")).await.unwrap();
    assert_eq!(answer, Acceptance::Known(known(&second)));
    assert_eq!(fixture.count("run_queue").await, 3);
}

async fn racing_requests_of_a_key_make_one_run(fixture: Fixture) {
    let runs: Vec<NewQueuedRun> = (0..12)
        .map(|_| NewQueuedRun {
            idempotency: Some(key("a", "body", at(1_000_000_000))),
            ..queued_run(&fixture.tenant)
        })
        .collect();
    let answers = join_all(runs.iter().map(|run| fixture.store.run_accept(run))).await;
    let answers: Vec<Acceptance> = answers.into_iter().map(Result::unwrap).collect();
    let accepted = answers
        .iter()
        .position(|answer| matches!(answer, Acceptance::Accepted { .. }));
    let accepted = runs[accepted.unwrap()].summary.run_id.as_uuid();
    let known = answers
        .iter()
        .filter(|answer| matches!(answer, Acceptance::Known(known) if known.resource_id == accepted));
    assert_eq!(known.count(), 11);
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [1, 1]);
}

async fn a_key_can_be_claimed_for_anything(fixture: Fixture) {
    let (first, second) = (session_id().as_uuid(), session_id().as_uuid());
    let claimed = key("a", "body", at(10));
    let claim = async |key: &IdempotencyKey, id, now| {
        let key = IdempotencyKey {
            claimed_at: at(now),
            ..key.clone()
        };
        fixture
            .store
            .idempotency_claim(&fixture.tenant, &key, id)
            .await
            .unwrap()
    };
    let known = KnownRequest {
        resource_id: first,
        digest: claimed.digest,
    };
    assert_eq!(claim(&claimed, first, 0).await, None);
    assert_eq!(
        claim(&claimed, first, 1).await,
        None,
        "its own id is no earlier request's"
    );
    // Another request for the same thing is another request all the same.
    let another = key("a", "another", at(20));
    assert_eq!(claim(&another, first, 2).await, Some(known));
    assert_eq!(claim(&another, second, 9).await, Some(known));
    assert_eq!(claim(&another, second, 10).await, None);
    let run = NewQueuedRun {
        idempotency: Some(key("a", "body", at(1_000_000_000))),
        ..queued_run(&fixture.tenant)
    };
    // The clock of the machine that accepts it is far ahead.
    let run = NewQueuedRun {
        summary: RunSummary {
            created_at: at(1_000),
            ..run.summary.clone()
        },
        ..run
    };
    let answer = fixture.store.run_accept(&run).await.unwrap();
    assert!(
        matches!(answer, Acceptance::Known(known) if known.resource_id == second),
        "{answer:?}"
    );
}

async fn the_queue_is_counted_up_to_a_limit(fixture: Fixture) {
    for count in 0..5 {
        assert_eq!(fixture.store.queue_length(3).await.unwrap(), count.min(3));
        fixture.enqueue_new().await;
    }
    assert_eq!(fixture.lease(4).await.len(), 4);
    assert_eq!(fixture.store.queue_length(3).await.unwrap(), 1);
    let figures = fixture.store.queue_figures().await.unwrap();
    assert_eq!((figures.waiting, figures.held, figures.leased), (1, 0, 4));
    assert!(figures.oldest_waiting.is_some());
    fixture.lease(1).await;
    let figures = fixture.store.queue_figures().await.unwrap();
    assert_eq!((figures.waiting, figures.leased, figures.oldest_waiting), (0, 5, None));
    let nobody = Lease {
        tenant: fixture.tenant.clone(),
        run_id: test_support::drafts::run_id(),
        fence: 1,
    };
    assert!(!fixture.store.lease_release(&nobody).await.unwrap());
}
