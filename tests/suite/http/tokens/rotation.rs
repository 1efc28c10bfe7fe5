//! Keys that change, and tokens with keys that nobody has.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::json;
use test_support::wait::until;

use super::provider::Provider;
use super::{assert_refused, runs_of, service_of};

/// Longer than the service waits between two reads for unknown keys.
const PAUSE: TimeDelta = TimeDelta::seconds(31);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rotation_under_load_refuses_no_token() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let call = async |token: &str| {
        let answer = runs_of(&service, token).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let mut old = provider.token(json!({})).await;
    for _ in 0..5 {
        provider.rotate(1).await;
        let new = provider.token(json!({})).await;
        // The first tokens of the new key come at once, and those of the old one go on.
        let tokens = (0..60).map(|number| if number % 2 == 0 { &new } else { &old });
        join_all(tokens.map(|token| call(token))).await;
        service.clock.advance(PAUSE);
        old = new;
    }
    service.finish().await;
}

#[tokio::test]
async fn a_key_that_the_issuer_withdraws_is_refused_after_the_next_read() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let old = provider.token(json!({})).await;
    runs_of(&service, &old).await.ok();
    provider.rotate(0).await;
    let reads = provider.key_reads().await;
    service.clock.advance(TimeDelta::minutes(10));
    until("the keys are not read", async || provider.key_reads().await > reads).await;
    let old = provider
        .token(json!({"sign": "other-key", "header": {"kid": "k1"}}))
        .await;
    until("the key is still there", async || {
        runs_of(&service, &old).await.text().contains("no key")
    })
    .await;
    service.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_unknown_keys_cause_one_read_and_hinder_nobody() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let token = provider.token(json!({})).await;
    runs_of(&service, &token).await.ok();
    let (reads, begun) = (provider.key_reads().await, Instant::now());
    let (_, rest) = token.split_once('.').unwrap();
    for batch in 0..100 {
        let calls = (0..100).map(|number| {
            let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": format!("{batch}-{number}")});
            let forged = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()));
            let service = &service;
            async move { runs_of(service, &forged).await }
        });
        for answer in join_all(calls).await {
            assert_refused(&answer, "no key");
        }
    }
    // A slow machine has the time for more.
    let most = 1 + begun.elapsed().as_secs() / 30;
    let more = provider.key_reads().await - reads;
    assert!((1..=most).contains(&more), "{more} reads");
    // Nothing was evicted.
    let other = provider.token(json!({"claims": {"sub": "another"}})).await;
    runs_of(&service, &other).await.ok();
    service.finish().await;
}

#[tokio::test]
async fn a_set_of_keys_that_cannot_be_used_replaces_none() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let published = provider.control("/jwks", json!({})).await["keys"].clone();
    let key = &published[0];
    let mut encrypting = key.clone();
    encrypting["use"] = json!("enc");
    let mut of_another = key.clone();
    of_another["alg"] = json!("ES384");
    runs_of(&service, &provider.token(json!({})).await).await.ok();
    for (asked, minutes) in [
        (json!({"keys": []}), 11),
        (json!({"keys": [encrypting]}), 1),
        (json!({"keys": [of_another]}), 1),
        (json!({"keys": vec![key; 51]}), 1),
        (json!({"raw": "no json"}), 1),
        (
            json!({"raw": format!("{{\"keys\": [{key}], \"x\": \"{}\"}}", "x".repeat(300_000))}),
            1,
        ),
        (json!({"keys": published, "status": 500}), 1),
        (json!({"keys": published, "status": 302}), 1),
    ] {
        provider.control("/jwks", asked).await;
        let reads = provider.key_reads().await;
        service.clock.advance(TimeDelta::minutes(minutes));
        until("the keys are not read", async || provider.key_reads().await > reads).await;
        let token = provider.token(json!({"ttl": 7_200})).await;
        runs_of(&service, &token).await.ok();
    }
    service.finish().await;
}
