//! The outbox: what is due is leased to one worker at a time, and is due again unless it is over.

use std::collections::BTreeSet;

use agent::ports::WebhookEvent;
use agent::record::{DeliveryRecord, DeliveryStatus, NewDelivery};
use chrono::TimeDelta;
use store::Page;
use store::outbox::{DeliveryFilter, DeliveryOutcome, DueDelivery, DueFilter, Restarted};
use store::queue::{IdempotencyKey, KnownRequest, LeaseTerms};
use test_support::deliveries::insert;
use test_support::drafts::{now, requester_at, run_id, tenant};
use values::clock::Timestamp;
use values::ids::{DeliveryId, RunId, UuidV7Source, WorkerId};
use values::session::hash_definition;

use crate::fixtures::Fixture;

on_both_engines!(
    a_due_delivery_is_leased_to_one_worker,
    a_lease_that_ends_gives_the_delivery_to_another_worker,
    rival_workers_share_what_is_due,
    busy_receivers_are_skipped,
    an_outcome_counts_from_the_worker_that_has_the_delivery,
    an_outcome_counts_for_the_attempt_that_it_comes_of,
    a_delivery_that_is_over_is_not_sent_again,
    no_message_of_a_backup_is_sent,
    a_restarted_delivery_starts_from_its_first_attempt,
    a_delivery_is_restarted_once_under_a_key,
    deliveries_list_by_status_and_run,
    an_unreadable_message_leaves_the_others_alone,
);

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Puts a message into the outbox and returns its record.
async fn write(fixture: &Fixture, run_id: RunId, created_at: Timestamp) -> DeliveryRecord {
    write_to(fixture, "https://example.org/hooks?token=it's", run_id, created_at).await
}

async fn write_to(fixture: &Fixture, url: &str, run_id: RunId, created_at: Timestamp) -> DeliveryRecord {
    let delivery = NewDelivery {
        delivery_id: DeliveryId::generate(&UuidV7Source),
        event: WebhookEvent::Stopped,
        url: url.to_owned(),
        secret: Some("main".to_owned()),
        body: body_of(run_id),
        trace: Some(TRACE.parse().unwrap()),
        created_at,
    };
    insert(&fixture.database, run_id, &delivery).await;
    DeliveryRecord {
        delivery_id: delivery.delivery_id,
        run_id: Some(run_id),
        event: delivery.event,
        url: delivery.url,
        secret: delivery.secret,
        status: DeliveryStatus::Pending,
        attempts: 0,
        response_status: None,
        error: None,
        created_at,
        due_at: Some(created_at),
        delivered_at: None,
    }
}

fn body_of(run_id: RunId) -> String {
    format!(r#"{{"type":"run.stopped","data":{{"run_id":"{run_id}","words":"Zürich \u0000"}}}}"#)
}

fn terms(now: Timestamp) -> LeaseTerms {
    LeaseTerms {
        worker: WorkerId::generate(&UuidV7Source),
        now,
        until: now + TimeDelta::seconds(30),
    }
}

async fn lease(fixture: &Fixture, terms: &LeaseTerms, limit: u32) -> Vec<DueDelivery> {
    lease_except(fixture, terms, limit, &[]).await
}

async fn lease_except(fixture: &Fixture, terms: &LeaseTerms, limit: u32, receivers: &[String]) -> Vec<DueDelivery> {
    let filter = DueFilter {
        limit,
        except_receivers: receivers,
        except_tenants: &[],
    };
    fixture.store.delivery_lease(terms, filter).await.unwrap()
}

/// Leases the only delivery that is due.
async fn lease_one(fixture: &Fixture, terms: &LeaseTerms) -> DeliveryRecord {
    let mut leased = lease(fixture, terms, 10).await;
    assert_eq!(leased.len(), 1);
    leased.remove(0).record
}

async fn lookup(fixture: &Fixture, delivery_id: DeliveryId) -> DeliveryRecord {
    let found = fixture.store.delivery_lookup(&fixture.tenant, delivery_id).await;
    found.unwrap().unwrap()
}

fn failed(due_at: Timestamp) -> DeliveryOutcome {
    DeliveryOutcome {
        status: DeliveryStatus::Pending,
        response_status: Some(503),
        error: Some("it answered with status 503".to_owned()),
        delivered_at: None,
        due_at: Some(due_at),
    }
}

async fn a_due_delivery_is_leased_to_one_worker(fixture: Fixture) {
    let time = now();
    let written = write(&fixture, run_id(), time).await;
    assert_eq!(lookup(&fixture, written.delivery_id).await, written);
    let early = terms(time - TimeDelta::microseconds(1));
    assert_eq!(lease(&fixture, &early, 10).await, []);
    let (first, second) = (terms(time), terms(time + TimeDelta::seconds(29)));
    let leased = DeliveryRecord {
        attempts: 1,
        due_at: Some(first.until),
        ..written
    };
    let expected = DueDelivery {
        tenant: fixture.tenant.clone(),
        body: body_of(leased.run_id.unwrap()),
        trace: Some(TRACE.parse().unwrap()),
        record: leased.clone(),
    };
    assert_eq!(lease(&fixture, &first, 0).await, []);
    assert_eq!(lease(&fixture, &first, 10).await, [expected]);
    assert_eq!(lease(&fixture, &second, 10).await, []);
    assert_eq!(lookup(&fixture, leased.delivery_id).await, leased);
}

async fn a_lease_that_ends_gives_the_delivery_to_another_worker(fixture: Fixture) {
    let time = now();
    let written = write(&fixture, run_id(), time).await;
    let killed = terms(time);
    let lost = lease_one(&fixture, &killed).await;
    let heir = terms(killed.until);
    let [again] = &lease(&fixture, &heir, 10).await[..] else {
        panic!("nothing comes again")
    };
    assert_eq!(
        (again.record.delivery_id, again.record.attempts),
        (written.delivery_id, 2)
    );
    let id = written.delivery_id;
    let outcome = failed(time + TimeDelta::hours(1));
    let late = fixture
        .store
        .delivery_record(&fixture.tenant, &lost, killed.worker, &outcome);
    assert!(!late.await.unwrap(), "a worker that was taken over notes nothing");
    assert_eq!(lookup(&fixture, id).await, again.record);
}

async fn rival_workers_share_what_is_due(fixture: Fixture) {
    let time = now();
    let mut written = BTreeSet::new();
    for _ in 0..40 {
        written.insert(write(&fixture, run_id(), time).await.delivery_id);
    }
    let rivals: Vec<_> = (0..8).map(|_| terms(time)).collect();
    let racing = rivals.iter().map(|terms| async {
        let mut taken = Vec::new();
        loop {
            let leased = lease(&fixture, terms, 3).await;
            assert!(leased.len() <= 3);
            if leased.is_empty() {
                return taken;
            }
            taken.extend(leased.into_iter().map(|due| due.record));
        }
    });
    let mut taken: Vec<_> = futures_util::future::join_all(racing).await.concat();
    // Rows that a rival was about to take are passed over, so some may be left.
    taken.extend(lease(&fixture, &rivals[0], 40).await.into_iter().map(|due| due.record));
    assert_eq!(taken.len(), 40, "none twice");
    assert!(taken.iter().all(|record| record.attempts == 1));
    assert_eq!(
        taken.iter().map(|record| record.delivery_id).collect::<BTreeSet<_>>(),
        written
    );
}

async fn busy_receivers_are_skipped(fixture: Fixture) {
    let time = now();
    let mut written = Vec::new();
    for url in [
        "https://busy.example/1",
        "https://Zürich.example/%_",
        "http://BUSY.example.:444/2",
        "https://other.example/https://busy.example",
        "https://b",
    ] {
        written.push(write_to(&fixture, url, run_id(), time).await.delivery_id);
    }
    let except = ["busy.example".to_owned(), "xn--zrich-kva.example".to_owned()];
    let ids = |leased: Vec<DueDelivery>| -> Vec<_> { leased.iter().map(|due| due.record.delivery_id).collect() };
    let leased = lease_except(&fixture, &terms(time), 10, &except).await;
    assert_eq!(ids(leased), written[3..]);
    let leased = lease_except(&fixture, &terms(time), 10, &except[1..]).await;
    assert_eq!(ids(leased), [written[0], written[2]]);
    let of_tenant = DueFilter {
        limit: 10,
        except_receivers: &[],
        except_tenants: std::slice::from_ref(&fixture.tenant),
    };
    let leased = fixture.store.delivery_lease(&terms(time), of_tenant).await.unwrap();
    assert_eq!(leased, []);
    assert_eq!(ids(lease(&fixture, &terms(time), 10).await), [written[1]]);
}

async fn an_outcome_counts_from_the_worker_that_has_the_delivery(fixture: Fixture) {
    let time = now();
    let written = write(&fixture, run_id(), time).await;
    let id = written.delivery_id;
    let (owner, other) = (terms(time), terms(time));
    let leased = lease_one(&fixture, &owner).await;
    let again = time + TimeDelta::seconds(5);
    let outcome = failed(again);
    let record = |tenant, worker| fixture.store.delivery_record(tenant, &leased, worker, &outcome);
    let foreign = tenant("other");
    assert!(!record(&fixture.tenant, other.worker).await.unwrap());
    assert!(!record(&foreign, owner.worker).await.unwrap());
    assert!(record(&fixture.tenant, owner.worker).await.unwrap());
    assert!(!record(&fixture.tenant, owner.worker).await.unwrap(), "once");
    let expected = DeliveryRecord {
        attempts: 1,
        response_status: Some(503),
        error: outcome.error.clone(),
        due_at: Some(again),
        ..written
    };
    assert_eq!(lookup(&fixture, id).await, expected);
    assert_eq!(lease(&fixture, &terms(again - TimeDelta::microseconds(1)), 1).await, []);
    assert_eq!(lease(&fixture, &terms(again), 1).await[0].record.attempts, 2);
}

async fn a_delivery_that_is_over_is_not_sent_again(fixture: Fixture) {
    let time = now();
    for (status, delivered_at) in [(DeliveryStatus::Delivered, Some(time)), (DeliveryStatus::Dead, None)] {
        let written = write(&fixture, run_id(), time).await;
        let owner = terms(time);
        let leased = lease_one(&fixture, &owner).await;
        let outcome = DeliveryOutcome {
            status,
            response_status: Some(200),
            error: None,
            delivered_at,
            due_at: None,
        };
        let id = written.delivery_id;
        let recorded = fixture
            .store
            .delivery_record(&fixture.tenant, &leased, owner.worker, &outcome);
        assert!(recorded.await.unwrap());
        let expected = DeliveryRecord {
            status,
            attempts: 1,
            response_status: Some(200),
            due_at: None,
            delivered_at,
            ..written
        };
        assert_eq!(lookup(&fixture, id).await, expected);
        assert_eq!(lease(&fixture, &terms(time + TimeDelta::days(365)), 10).await, []);
    }
}

async fn no_message_of_a_backup_is_sent(fixture: Fixture) {
    let time = now();
    let due = write(&fixture, run_id(), time).await;
    let figures = fixture.store.restore_finish(&requester_at(time)).await.unwrap();
    assert_eq!(figures.deliveries, 1);
    assert_eq!(lease(&fixture, &terms(time + TimeDelta::days(1)), 10).await, []);
    let given_up = DeliveryRecord {
        status: DeliveryStatus::Dead,
        due_at: None,
        error: Some("not sent after a restore: it may have been sent after the backup".to_owned()),
        ..due
    };
    assert_eq!(lookup(&fixture, given_up.delivery_id).await, given_up);
    // What is over stays as it is.
    let again = fixture.store.restore_finish(&requester_at(time)).await.unwrap();
    assert_eq!(again.deliveries, 0);
}

async fn a_restarted_delivery_starts_from_its_first_attempt(fixture: Fixture) {
    let time = now();
    let written = write(&fixture, run_id(), time).await;
    let id = written.delivery_id;
    let restart = async |tenant, now| {
        fixture
            .store
            .delivery_restart(tenant, id, None, &requester_at(now))
            .await
    };
    let foreign = tenant("other");
    assert_eq!(restart(&foreign, time).await.unwrap(), Restarted::Missing);
    let owner = terms(time);
    let leased = lease_one(&fixture, &owner).await;
    let later = time + TimeDelta::seconds(1);
    let restarted = DeliveryRecord {
        due_at: Some(later),
        ..written
    };
    assert_eq!(
        restart(&fixture.tenant, later).await.unwrap(),
        Restarted::Now(restarted.clone()),
        "while it is sent"
    );
    let outcome = failed(later);
    let late = fixture
        .store
        .delivery_record(&fixture.tenant, &leased, owner.worker, &outcome);
    assert!(!late.await.unwrap(), "the attempt under way counts no more");
    let owner = terms(later);
    let leased = lease_one(&fixture, &owner).await;
    let dead = DeliveryOutcome {
        status: DeliveryStatus::Dead,
        due_at: None,
        ..outcome
    };
    let recorded = fixture
        .store
        .delivery_record(&fixture.tenant, &leased, owner.worker, &dead);
    assert!(recorded.await.unwrap());
    assert_eq!(
        restart(&fixture.tenant, later).await.unwrap(),
        Restarted::Now(restarted.clone())
    );
    assert_eq!(lookup(&fixture, id).await, restarted);
    assert_eq!(lease(&fixture, &terms(later), 1).await[0].record.attempts, 1);
}

async fn an_outcome_counts_for_the_attempt_that_it_comes_of(fixture: Fixture) {
    let time = now();
    let id = write(&fixture, run_id(), time).await.delivery_id;
    let worker = terms(time).worker;
    let at = |seconds| LeaseTerms {
        worker,
        ..terms(time + TimeDelta::seconds(seconds))
    };
    let earlier = lease_one(&fixture, &at(0)).await;
    // Begun anew while it is sent, it is leased by the same worker.
    let by = requester_at(time + TimeDelta::seconds(1));
    let restarted = fixture.store.delivery_restart(&fixture.tenant, id, None, &by);
    assert!(matches!(restarted.await.unwrap(), Restarted::Now(_)));
    let later = lease_one(&fixture, &at(1)).await;
    assert_eq!((earlier.attempts, later.attempts), (1, 1));
    let dead = DeliveryOutcome {
        status: DeliveryStatus::Dead,
        due_at: None,
        ..failed(time)
    };
    let delivered = DeliveryOutcome {
        status: DeliveryStatus::Delivered,
        response_status: Some(200),
        error: None,
        delivered_at: Some(time),
        due_at: None,
    };
    let record = async |leased, outcome| {
        let recorded = fixture.store.delivery_record(&fixture.tenant, leased, worker, outcome);
        recorded.await.unwrap()
    };
    assert!(!record(&earlier, &dead).await);
    assert_eq!(lookup(&fixture, id).await, later);
    assert!(record(&later, &delivered).await);
    assert!(!record(&earlier, &dead).await);
    assert_eq!(lookup(&fixture, id).await.status, DeliveryStatus::Delivered);
}

async fn a_delivery_is_restarted_once_under_a_key(fixture: Fixture) {
    let time = now();
    let id = write(&fixture, run_id(), time).await.delivery_id;
    let later = time + TimeDelta::seconds(1);
    let key = IdempotencyKey {
        key: "k".to_owned(),
        digest: hash_definition(b"again"),
        claimed_at: time,
        expires_at: time + TimeDelta::hours(1),
    };
    let restart = async |id, now| {
        let key = IdempotencyKey {
            claimed_at: now,
            ..key.clone()
        };
        fixture
            .store
            .delivery_restart(&fixture.tenant, id, Some(&key), &requester_at(now))
            .await
    };
    // What was refused leaves no key behind.
    let nowhere = DeliveryId::generate(&UuidV7Source);
    assert_eq!(restart(nowhere, time).await.unwrap(), Restarted::Missing);
    let known = Restarted::Known(KnownRequest {
        resource_id: id.as_uuid(),
        digest: key.digest,
    });
    let at_once = futures_util::future::join_all((0..4).map(|_| restart(id, time))).await;
    let at_once: Vec<_> = at_once.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        at_once.iter().filter(|restarted| **restarted == known).count(),
        3,
        "{at_once:?}"
    );
    lease(&fixture, &terms(time), 1).await;
    let sent = lookup(&fixture, id).await;
    assert_eq!(sent.attempts, 1);
    assert_eq!(restart(id, later).await.unwrap(), known);
    assert_eq!(lookup(&fixture, id).await, sent);
    // After its time the key is free.
    let expired = key.expires_at + TimeDelta::seconds(1);
    assert!(matches!(restart(id, expired).await.unwrap(), Restarted::Now(_)));
}

async fn deliveries_list_by_status_and_run(fixture: Fixture) {
    let time = now();
    let (run, other) = (run_id(), run_id());
    let mut ids = Vec::new();
    for n in 0..7 {
        let of = if n % 2 == 0 { run } else { other };
        ids.push(write(&fixture, of, time).await.delivery_id);
    }
    for status in ["dead", "delivered"] {
        fixture
            .execute(&format!(
                "update webhook_deliveries set status = '{status}', due_at = null where status = 'pending'
                    and delivery_id in (select delivery_id from webhook_deliveries where status = 'pending'
                        order by delivery_id limit 2)"
            ))
            .await;
    }
    let at = |picks: &[usize]| picks.iter().map(|pick| ids[*pick]).collect::<Vec<_>>();
    for (status, run_id, expected) in [
        (None, None, at(&[6, 5, 4, 3, 2, 1, 0])),
        (Some(DeliveryStatus::Dead), None, at(&[1, 0])),
        (Some(DeliveryStatus::Delivered), None, at(&[3, 2])),
        (Some(DeliveryStatus::Pending), None, at(&[6, 5, 4])),
        (None, Some(run), at(&[6, 4, 2, 0])),
        (Some(DeliveryStatus::Dead), Some(other), at(&[1])),
        (None, Some(test_support::drafts::run_id()), at(&[])),
    ] {
        let filter = DeliveryFilter { status, run_id };
        let mut seen = Vec::new();
        let mut before = None;
        loop {
            let page = Page { before, limit: 2 };
            let listed = fixture.store.delivery_list(&fixture.tenant, &filter, page).await;
            let listed = listed.unwrap();
            assert!(listed.len() <= 2);
            seen.extend(listed.iter().map(|record| record.delivery_id));
            let Some(last) = listed.last() else { break };
            before = Some(last.delivery_id);
        }
        assert_eq!(seen, expected, "{filter:?}");
    }
    let all = Page { before: None, limit: 9 };
    let (foreign, filter) = (tenant("other"), DeliveryFilter::default());
    let listed = fixture.store.delivery_list(&foreign, &filter, all).await;
    assert_eq!(listed.unwrap(), []);
}

async fn an_unreadable_message_leaves_the_others_alone(fixture: Fixture) {
    let time = now();
    // A later version reads what it has written, so that this one leases it is no attempt.
    for (change, attempts) in [
        ("schema_version = 2", 0),
        ("encoding = 7", 0),
        ("encoding = -1", 1),
        ("tenant = 'Not A Tenant'", 1),
        ("event = 'run.lost'", 1),
        ("response_status = -1", 1),
    ] {
        write(&fixture, run_id(), time).await;
        let changing = format!("update webhook_deliveries set {change}");
        fixture.execute(&changing).await;
        let good = write(&fixture, run_id(), time).await;
        let leased = lease(&fixture, &terms(time), 10).await;
        let ids: Vec<_> = leased.iter().map(|due| due.record.delivery_id).collect();
        assert_eq!(ids, [good.delivery_id], "{change}");
        let counted = fixture.database.number("select sum(attempts) from webhook_deliveries");
        assert_eq!(counted.await, attempts + 1, "{change}");
        fixture.execute("delete from webhook_deliveries").await;
    }
}
