//! Revocations of tokens: the later one of a subject counts, and expired ones are removed.

use chrono::TimeDelta;
use store::token_revocations::TokenRevocation;
use test_support::drafts::{now, requester};

use crate::fixtures::Fixture;

on_both_engines!(the_later_revocation_of_a_subject_counts_until_it_expires);

async fn the_later_revocation_of_a_subject_counts_until_it_expires(fixture: Fixture) {
    let (store, at) = (&fixture.store, now());
    let revocation = |issuer: &str, subject: &str, seconds| TokenRevocation {
        issuer: format!("https://{issuer}"),
        subject: subject.to_owned(),
        issued_before: at + TimeDelta::seconds(seconds),
    };
    let never = at - TimeDelta::days(30);
    for (issuer, subject, seconds) in [
        ("b", "u", 5),
        ("a", "u", 1),
        ("a", "u", 3),
        ("a", "u", 2),
        ("a", "s", 9),
    ] {
        let revocation = revocation(issuer, subject, seconds);
        store
            .token_revocation_put(&revocation, never, &requester())
            .await
            .unwrap();
    }
    let all = [
        revocation("a", "s", 9),
        revocation("a", "u", 3),
        revocation("b", "u", 5),
    ];
    assert_eq!(store.token_revocation_list().await.unwrap(), all);
    let last = revocation("c", "u", 20);
    let expired = at + TimeDelta::seconds(5);
    store.token_revocation_put(&last, expired, &requester()).await.unwrap();
    let left = [revocation("a", "s", 9), revocation("b", "u", 5), last];
    assert_eq!(store.token_revocation_list().await.unwrap(), left);
}
