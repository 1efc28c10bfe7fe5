//! What runs spend never passes a limit, and nothing that is reserved leaks.

use std::collections::HashMap;
use std::sync::Arc;

use agent::ports::WebhookEvent;
use agent::record::{NewDelivery, RunStatus};
use chrono::TimeDelta;
use futures_util::future::join_all;
use store::Store;
use store::outbox::DeliveryFilter;
use store::queue::Lease;
use store::runs::RunEnd;
use store::spend::{Reserved, SpendNews, SpendRequest, SpendStanding};
use store::{Page, StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::drafts::{now, run_end, run_record, tenant};
use values::clock::Timestamp;
use values::ids::{ApiKeyId, DeliveryId, RunId, SessionId, UuidV7Source};
use values::limits::{SpendLimit, SpendLimits, SpendScope};
use values::usage::{Cost, Usage};

use super::queue::fixtures::{commit_of, queued_run, terms, worker};
use crate::fixtures::Fixture;

on_both_engines!(
    a_run_reserves_a_part_of_each_of_its_limits_or_nothing,
    a_repeated_reservation_takes_nothing_more,
    the_end_of_a_run_settles_what_it_has_reserved,
    what_expires_is_given_back_and_settled_nevertheless,
    eight_writers_never_pass_a_limit,
    after_crashes_all_that_is_spent_is_that_of_records,
    a_part_of_a_limit_is_reported_once,
);

fn dollars(dollars: f64) -> Cost {
    Cost::from_dollars(dollars).unwrap()
}

/// Limits of a day and a month of a tenant, and of a day of an agent and a key.
pub(crate) fn limits(day: f64, month: f64) -> Vec<SpendLimit> {
    let tenant = SpendLimits {
        day: Some(dollars(day)),
        month: Some(dollars(month)),
    };
    let other = SpendLimits { month: None, ..tenant };
    let key = SpendScope::Key(ApiKeyId::from_uuid(uuid::Uuid::from_u128(7)));
    let utc = "UTC".parse().unwrap();
    let at = |limits: SpendLimits, scope: &SpendScope| limits.at(now(), utc, scope).collect::<Vec<_>>();
    [
        at(tenant, &SpendScope::Tenant),
        at(other, &SpendScope::Agent("support".to_owned())),
        at(other, &key),
    ]
    .concat()
}

pub(crate) fn request(run_id: RunId, limits: &[SpendLimit], least: f64, wanted: f64) -> SpendRequest {
    SpendRequest {
        tenant: tenant("acme"),
        run_id,
        limits: limits.to_vec(),
        least: dollars(least),
        wanted: dollars(wanted),
        most: Cost::MAX,
        expires_at: now() + TimeDelta::minutes(5),
    }
}

fn run() -> RunId {
    RunId::generate(&UuidV7Source)
}

async fn reserve(store: &dyn Store, request: &SpendRequest) -> Reserved {
    store.spend_reserve(request).await.unwrap()
}

/// Reads what is spent and reserved of each limit, in dollars.
async fn spent(fixture: &Fixture, limits: &[SpendLimit]) -> Vec<(f64, f64)> {
    let standings = fixture
        .store
        .spend_list(&fixture.tenant, limits.to_vec())
        .await
        .unwrap();
    let amounts = |standing: &SpendStanding| (standing.spent.dollars(), standing.reserved.dollars());
    standings.iter().map(amounts).collect()
}

/// The end of a run that was never in the queue, at this cost.
fn end(run_id: RunId, cost: f64) -> RunEnd {
    let mut record = run_record(run_id, SessionId::generate(&UuidV7Source), RunStatus::Failed);
    record.summary.usage = Usage {
        cost: Some(dollars(cost)),
        ..Usage::default()
    };
    RunEnd {
        is_metered: true,
        ..run_end(record, Vec::new())
    }
}

async fn a_run_reserves_a_part_of_each_of_its_limits_or_nothing(fixture: Fixture) {
    let (store, first, second) = (&*fixture.store, run(), run());
    let limits = limits(1.0, 1.5);
    // It wants less than a hundredth of what is left.
    let small = request(first, &limits, 0.001, 0.002);
    assert_eq!(reserve(store, &small).await, Reserved::Granted(dollars(0.011)));
    assert_eq!(spent(&fixture, &limits).await, [(0.0, 0.011); 4]);
    // It can't have all that it wants, but enough.
    let large = request(second, &limits, 0.9, 5.0);
    assert_eq!(reserve(store, &large).await, Reserved::Granted(dollars(0.989)));
    assert_eq!(spent(&fixture, &limits).await, [(0.0, 1.0); 4]);
    // One limit has nothing left, so nothing is taken from the other.
    let month_only: Vec<_> = limits[1..2].to_vec();
    for limits in [&limits[..], &limits[..1]] {
        let Reserved::Refused(standing) = reserve(store, &request(run(), limits, 0.0, 0.0)).await else {
            panic!("more is reserved than the limit allows");
        };
        assert_eq!((standing.limit.most, standing.left()), (dollars(1.0), Cost::ZERO));
    }
    let of_month = request(run(), &month_only, 0.1, 0.2);
    assert_eq!(reserve(store, &of_month).await, Reserved::Granted(dollars(0.2)));
    assert_eq!(fixture.count("spend_reservations").await, 4 + 4 + 1);
    store.spend_release(&fixture.tenant, second).await.unwrap();
    assert_eq!(
        spent(&fixture, &limits).await,
        [(0.0, 0.011), (0.0, 0.211), (0.0, 0.011), (0.0, 0.011)]
    );
    // A tenant has rows of its own.
    let other = SpendRequest {
        tenant: tenant("other"),
        ..request(run(), &limits, 1.0, 1.0)
    };
    assert_eq!(reserve(store, &other).await, Reserved::Granted(dollars(1.0)));
}

async fn a_repeated_reservation_takes_nothing_more(fixture: Fixture) {
    let (store, limits, run_id) = (&*fixture.store, limits(10.0, 10.0), run());
    for wanted in [0.5, 0.5, 2.0, 2.0] {
        let reserved = reserve(store, &request(run_id, &limits, 0.1, wanted)).await;
        assert_eq!(reserved, Reserved::Granted(dollars(wanted)));
        assert_eq!(spent(&fixture, &limits).await, [(0.0, wanted); 4]);
    }
    let bounded = SpendRequest {
        most: dollars(3.0),
        ..request(run_id, &limits, 0.1, 5.0)
    };
    assert_eq!(reserve(store, &bounded).await, Reserved::Granted(dollars(3.0)));
    assert_eq!(spent(&fixture, &limits).await, [(0.0, 3.0); 4]);
}

async fn the_end_of_a_run_settles_what_it_has_reserved(fixture: Fixture) {
    let (store, limits) = (&*fixture.store, limits(10.0, 10.0));
    let mut expected = 0.0;
    // A light run without a session.
    let failed = run();
    reserve(store, &request(failed, &limits, 0.1, 1.0)).await;
    store.run_record(&fixture.tenant, &end(failed, 0.25)).await.unwrap();
    expected += 0.25;
    assert_eq!(spent(&fixture, &limits).await, [(expected, 0.0); 4]);
    // A repeated end settles nothing again.
    store.run_record(&fixture.tenant, &end(failed, 0.25)).await.unwrap();
    assert_eq!(spent(&fixture, &limits).await, [(expected, 0.0); 4]);
    // Light runs with sessions, several in one batch.
    let commits = join_all((0..8).map(async |_| {
        let mut commit = fixture.commit(None, &["root"]);
        let ended = commit.run.as_mut().unwrap();
        (ended.record.summary.usage.cost, ended.is_metered) = (Some(dollars(0.125)), true);
        reserve(store, &request(ended.record.summary.run_id, &limits, 0.1, 0.5)).await;
        commit
    }));
    let commits = commits.await;
    assert_eq!(spent(&fixture, &limits).await, [(expected, 4.0); 4]);
    let committed = join_all(commits.iter().map(|commit| fixture.publish(commit)));
    committed.await;
    expected += 1.0;
    assert_eq!(spent(&fixture, &limits).await, [(expected, 0.0); 4]);
    // Queued runs, with a session and without one.
    for publishes in [true, false] {
        let queued = queued_run(&fixture.tenant);
        fixture.enqueue(&queued).await;
        let terms = terms(worker(), 0, 100);
        let leased = store
            .run_lease_now(&terms, &fixture.tenant, queued.summary.run_id)
            .await;
        let leased = leased.unwrap().unwrap();
        reserve(store, &request(queued.summary.run_id, &limits, 0.1, 0.5)).await;
        if publishes {
            let mut commit = commit_of(&fixture, &leased);
            let ended = commit.run.as_mut().unwrap();
            (ended.record.summary.usage.cost, ended.is_metered) = (Some(dollars(0.125)), true);
            fixture.publish(&commit).await;
        } else {
            let ended = RunEnd {
                lease: Some(Lease::clone(&leased.lease)),
                ..end(queued.summary.run_id, 0.125)
            };
            store.run_record(&fixture.tenant, &ended).await.unwrap();
        }
        expected += 0.125;
        assert_eq!(spent(&fixture, &limits).await, [(expected, 0.0); 4], "{publishes}");
    }
    assert_eq!(fixture.count("spend_reservations").await, 0);
}

async fn what_expires_is_given_back_and_settled_nevertheless(fixture: Fixture) {
    let (store, limits) = (&*fixture.store, limits(10.0, 10.0));
    let (lost, late, renewed) = (run(), run(), run());
    for run_id in [lost, late, renewed] {
        reserve(store, &request(run_id, &limits, 0.1, 1.0)).await;
    }
    let after = now() + TimeDelta::minutes(6);
    let acme = fixture.tenant.clone();
    store
        .spend_renew(&[(acme.clone(), renewed), (acme, run())], after + TimeDelta::minutes(1))
        .await
        .unwrap();
    assert_eq!(store.spend_sweep(now()).await.unwrap(), 0);
    assert_eq!(store.spend_sweep(after).await.unwrap(), 8);
    assert_eq!(store.spend_sweep(after).await.unwrap(), 0);
    assert_eq!(spent(&fixture, &limits).await, [(0.0, 1.0); 4]);
    // A run that ends after all has spent what it has spent.
    store.run_record(&fixture.tenant, &end(late, 0.5)).await.unwrap();
    assert_eq!(spent(&fixture, &limits).await, [(0.5, 1.0); 4]);
    // A run whose reservation has expired may reserve again. A renewal does not bring it back.
    store
        .spend_renew(&[(fixture.tenant.clone(), lost)], after)
        .await
        .unwrap();
    assert_eq!(spent(&fixture, &limits).await, [(0.5, 1.0); 4]);
    reserve(store, &request(lost, &limits, 0.1, 2.0)).await;
    assert_eq!(spent(&fixture, &limits).await, [(0.5, 3.0); 4]);
    assert_eq!(store.spend_sweep(after + TimeDelta::minutes(2)).await.unwrap(), 8);
    assert_eq!(spent(&fixture, &limits).await, [(0.5, 0.0); 4]);
    // After some days nobody waits for the ends of lost runs.
    assert_eq!(fixture.count("spend_reservations").await, 8);
    store.spend_sweep(after + TimeDelta::days(9)).await.unwrap();
    assert_eq!(fixture.count("spend_reservations").await, 0);
}

/// Eight writers in four processes reserve, prolong and end runs at once, and sweep.
async fn eight_writers_never_pass_a_limit(fixture: Fixture) {
    let limits = Arc::new(limits(1.0, 1.5));
    let writers = (0_u32..8).map(async |number| {
        let settings = StoreSettings {
            max_connections: 2,
            ..TestDatabase::settings()
        };
        let store = open(fixture.database.url(), settings).await.unwrap();
        let (mut refused, mut known) = (0, Cost::ZERO);
        for turn in 0..40 {
            let run_id = run();
            let wanted = f64::from((number * 7 + turn) % 13) / 100.0;
            let reserved = reserve(&*store, &request(run_id, &limits, 0.001, wanted)).await;
            let Reserved::Granted(total) = reserved else {
                refused += 1;
                continue;
            };
            // Some processes are killed.
            if turn % 5 == 0 {
                continue;
            }
            let more = reserve(&*store, &request(run_id, &limits, wanted, wanted + 0.01)).await;
            let total = if let Reserved::Granted(more) = more {
                more
            } else {
                total
            };
            let cost = total.dollars() / 8.0;
            store.run_record(&fixture.tenant, &end(run_id, cost)).await.unwrap();
            known = known + dollars(cost);
            if turn % 7 == 0 {
                store.spend_sweep(now()).await.unwrap();
            }
            for (limit, (spent, reserved)) in limits.iter().zip(spent(&fixture, &limits).await) {
                assert!(
                    spent + reserved <= limit.most.dollars() + 1e-9,
                    "{spent} + {reserved}: {limit:?}"
                );
            }
        }
        store.close().await;
        (refused, known)
    });
    let ended: Vec<(u32, Cost)> = join_all(writers).await;
    let refused: u32 = ended.iter().map(|(refused, _)| refused).sum();
    assert!(refused > 0, "the limit was never reached");
    assert_settled(&fixture, &limits).await;
}

/// The sum of what is spent is that of the records, and what is reserved is that of reservations.
async fn assert_settled(fixture: &Fixture, limits: &[SpendLimit]) {
    let database = &fixture.database;
    let micro = if database.engine == test_support::databases::Engine::Postgres {
        "select coalesce(sum(ceil((cost * 1e6)::numeric(20, 6))), 0)::bigint from runs"
    } else {
        "select cast(coalesce(sum(cast(round(cost * 1e12) as integer) / 1000000
            + (cast(round(cost * 1e12) as integer) % 1000000 > 0)), 0) as integer) from runs"
    };
    let records = database.number(micro).await;
    for limit in limits {
        let key = format!("scope = '{}' and period = '{}'", limit.scope, limit.period_name());
        let spent = database
            .number(&format!("select spent from spend_periods where {key}"))
            .await;
        assert_eq!(spent, records, "{key}");
        let reserved = database
            .number(&format!("select reserved from spend_periods where {key}"))
            .await;
        let held = format!("select cast(coalesce(sum(amount), 0) as bigint) from spend_reservations where {key}");
        assert_eq!(reserved, database.number(&held).await, "{key}");
    }
}

/// Processes do one thing after the other, in any order, and are killed at any point.
async fn after_crashes_all_that_is_spent_is_that_of_records(fixture: Fixture) {
    let (store, limits) = (&*fixture.store, limits(100.0, 100.0));
    let mut time = now();
    let mut alive: HashMap<RunId, f64> = HashMap::new();
    // The same sequence each time: a test that fails can be repeated.
    let mut seed = 1_u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..300 {
        let one = alive.keys().copied().min();
        match (next(7), one) {
            (0 | 1, _) | (_, None) => {
                let run_id = run();
                let begun = SpendRequest {
                    expires_at: time + TimeDelta::minutes(5),
                    ..request(run_id, &limits, 0.000_001, 0.01)
                };
                if let Reserved::Granted(total) = reserve(store, &begun).await {
                    alive.insert(run_id, total.dollars());
                }
            }
            (2, Some(run_id)) => {
                let more = SpendRequest {
                    expires_at: time + TimeDelta::minutes(5),
                    ..request(run_id, &limits, 0.000_001, alive[&run_id] * 2.0)
                };
                reserve(store, &more).await;
            }
            (3, Some(run_id)) => {
                alive.remove(&run_id);
                let cost = f64::from(u32::try_from(next(1_000_000)).unwrap()) / 1e8;
                store.run_record(&fixture.tenant, &end(run_id, cost)).await.unwrap();
            }
            (4, Some(run_id)) => {
                store
                    .spend_renew(&[(fixture.tenant.clone(), run_id)], time + TimeDelta::minutes(5))
                    .await
                    .unwrap();
            }
            // The process is gone, or it goes on although its reservation expires.
            (5, Some(run_id)) => drop(alive.remove(&run_id)),
            _ => {
                time += TimeDelta::minutes(2);
                store.spend_sweep(time).await.unwrap();
            }
        }
        assert_settled(&fixture, &limits).await;
    }
    store.spend_sweep(time + TimeDelta::hours(1)).await.unwrap();
    assert_settled(&fixture, &limits).await;
    assert!(
        spent(&fixture, &limits)
            .await
            .iter()
            .all(|(_, reserved)| *reserved == 0.0)
    );
}

async fn a_part_of_a_limit_is_reported_once(fixture: Fixture) {
    let (store, limits) = (&*fixture.store, limits(1.0, 10.0));
    let periods: Vec<_> = limits[..2].iter().map(SpendLimit::period_name).collect();
    let news = async || store.spend_news(&periods, 50).await.unwrap();
    let run_id = run();
    reserve(store, &request(run_id, &limits[..2], 0.1, 0.9)).await;
    // What is only reserved is no news.
    assert_eq!(news().await, []);
    store.run_record(&fixture.tenant, &end(run_id, 0.85)).await.unwrap();
    let expected = SpendNews {
        tenant: fixture.tenant.clone(),
        scope: "tenant".to_owned(),
        period: periods[0].clone(),
        most: dollars(1.0),
        spent: dollars(0.85),
        notified: 0,
    };
    assert_eq!(news().await, std::slice::from_ref(&expected));
    assert_eq!(store.spend_news(&periods[1..], 50).await.unwrap(), []);
    let message = |created_at: Timestamp| NewDelivery {
        delivery_id: DeliveryId::generate(&UuidV7Source),
        event: WebhookEvent::SpendThreshold,
        url: "https://example.org/spending".to_owned(),
        secret: None,
        body: "{}".to_owned(),
        trace: None,
        created_at,
    };
    // Two replicas tell it at once.
    let (first, second) = (message(now()), message(now()));
    let sent = tokio::join!(
        store.spend_notify(&expected, 80, &first),
        store.spend_notify(&expected, 80, &second)
    );
    assert_eq!(
        [sent.0.unwrap(), sent.1.unwrap()].iter().filter(|sent| **sent).count(),
        1
    );
    assert!(!store.spend_notify(&expected, 50, &message(now())).await.unwrap());
    assert_eq!(
        news().await,
        [SpendNews {
            notified: 80,
            ..expected.clone()
        }]
    );
    let page = Page {
        before: None,
        limit: 10,
    };
    let deliveries = store
        .delivery_list(&fixture.tenant, &DeliveryFilter::default(), page)
        .await
        .unwrap();
    assert_eq!(deliveries.len(), 1);
    assert_eq!(
        (deliveries[0].run_id, deliveries[0].event),
        (None, WebhookEvent::SpendThreshold)
    );
    assert!(store.spend_notify(&expected, 100, &message(now())).await.unwrap());
    assert_eq!(news().await, []);
}
