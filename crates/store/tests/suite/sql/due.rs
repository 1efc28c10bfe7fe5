//! Which deliveries are leased next, where those of many are due.

use agent::ports::WebhookEvent;
use agent::record::NewDelivery;
use chrono::TimeDelta;
use store::outbox::DueFilter;
use store::queue::LeaseTerms;
use test_support::deliveries::insertion_of;
use test_support::drafts::{now, run_id, tenant};
use values::ids::{DeliveryId, UuidV7Source, WorkerId};

use crate::fixtures::Fixture;

on_both_engines!(the_oldest_are_leased_even_if_many_are_skipped);

async fn the_oldest_are_leased_even_if_many_are_skipped(fixture: Fixture) {
    let time = now();
    let (mut waiting, mut insertions) = (Vec::new(), Vec::new());
    for n in 0..300_usize {
        // First those to a busy host, then those of a busy tenant, then all kinds.
        let (tenant, host) = match n {
            0..120 => (n % 2, "busy.example"),
            120..240 => (2, ["a.example", "z.example"][n % 2]),
            _ => (
                2 + n % 3,
                ["a.example", "b.example", "busy.example", "z.example"][n % 4],
            ),
        };
        let (tenant, url) = (format!("tenant{tenant}"), format!("https://{host}/"));
        let delivery = NewDelivery {
            delivery_id: DeliveryId::generate(&UuidV7Source),
            event: WebhookEvent::Stopped,
            url,
            secret: None,
            body: "{}".to_owned(),
            trace: None,
            created_at: time + TimeDelta::microseconds(n.try_into().unwrap()),
        };
        insertions.push(insertion_of(&tenant, &fixture.database, run_id(), &delivery));
        waiting.push((tenant, host, delivery.delivery_id));
    }
    fixture.execute(&insertions.join(";")).await;
    let now = time + TimeDelta::microseconds(297);
    let terms = LeaseTerms {
        worker: WorkerId::generate(&UuidV7Source),
        now,
        until: now + TimeDelta::seconds(30),
    };
    waiting.truncate(298);
    let (busy, nowhere) = (["busy.example".to_owned()], ["nowhere.example".to_owned()]);
    let (crowded, other) = ([tenant("tenant2")], [tenant("tenant3")]);
    let choices: [(&[_], &[_]); 6] = [
        (&busy, &crowded),
        (&nowhere, &[]),
        (&busy, &[]),
        (&[], &crowded),
        (&nowhere, &other),
        (&busy, &other),
    ];
    let mut emptied = 0;
    for (except_receivers, except_tenants) in choices.iter().cycle().copied() {
        let filter = DueFilter {
            limit: 7,
            except_receivers,
            except_tenants,
        };
        let expected: Vec<_> = waiting
            .iter()
            .filter(|(tenant, host, _)| {
                let is_busy = except_receivers.iter().any(|busy| busy == host);
                !is_busy && except_tenants.iter().all(|busy| busy.as_str() != tenant)
            })
            .map(|(_, _, id)| *id)
            .take(7)
            .collect();
        let leased = fixture.store.delivery_lease(&terms, filter).await.unwrap();
        let leased: Vec<_> = leased.iter().map(|due| due.record.delivery_id).collect();
        assert_eq!(leased, expected, "{filter:?}, {} wait", waiting.len());
        waiting.retain(|(_, _, id)| !leased.contains(id));
        emptied = if leased.is_empty() { emptied + 1 } else { 0 };
        if emptied == choices.len() {
            break;
        }
    }
    assert_eq!(waiting, []);
}
