//! An identity provider that is down.

use chrono::TimeDelta;
use reqwest::header;
use serde_json::json;
use store::keys::Scope;
use test_support::wait::until;

use super::provider::Provider;
use super::{assert_refused, runs_of, service_of};
use crate::http::service::Service;
use crate::support::answer::read;

/// A token that outlives the test.
const LONG: i64 = 86_000;

async fn age(service: &Service, secret: &str) -> f64 {
    let request = service.request(reqwest::Method::GET, "/metrics");
    let metrics = read(request.header(header::AUTHORIZATION, format!("Bearer {secret}"))).await;
    let text = metrics.text();
    let line = text
        .lines()
        .find(|line| line.starts_with("agent_runtime_jwks_age_seconds{issuer=\"main\"}"));
    let value = line.unwrap_or_else(|| panic!("{text}")).split(' ').nth(1).unwrap();
    value.parse().unwrap()
}

#[tokio::test]
async fn a_provider_that_is_down_for_an_hour_stops_nobody() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[("metrics.enabled", "true")]).await;
    let (_, secret) = service.make_key("acme", &[Scope::Metrics]).await;
    let long = async |sub: &str| provider.token(json!({"ttl": LONG, "claims": {"sub": sub}})).await;
    let tokens = [long("a").await, long("b").await, long("c").await];
    runs_of(&service, &tokens[0]).await.ok();
    assert!(age(&service, &secret).await < 60.0);
    provider.stop().await;
    for _ in 0..60 {
        service.clock.advance(TimeDelta::minutes(1));
        runs_of(&service, &tokens[0]).await.ok();
    }
    // A token that is in no cache.
    runs_of(&service, &tokens[1]).await.ok();
    assert!(age(&service, &secret).await >= 3_600.0);
    provider.resume().await;
    service.clock.advance(TimeDelta::seconds(31));
    until("the keys are not read again", async || {
        age(&service, &secret).await < 600.0
    })
    .await;

    provider.stop().await;
    service.clock.advance(TimeDelta::hours(22) + TimeDelta::minutes(40));
    runs_of(&service, &tokens[2]).await.ok();
    service.finish().await;
}

#[tokio::test]
async fn a_service_that_starts_before_its_provider_refuses_nothing_for_good() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let token = provider.token(json!({})).await;
    provider.stop().await;
    let service = service_of(&[("main", &provider)], &[]).await;
    let answer = runs_of(&service, &token).await;
    answer.assert_problem("token_keys_unavailable");
    assert_eq!(answer.header("retry-after"), "5");
    let (_, secret) = service.make_key("acme", &[Scope::SessionsRead]).await;
    runs_of(&service, &secret).await.ok();
    provider.resume().await;
    service.clock.advance(TimeDelta::seconds(31));
    until("the token is not accepted", async || {
        runs_of(&service, &token).await.status == 200
    })
    .await;
    service.finish().await;
}

#[tokio::test]
async fn keys_are_used_for_a_day() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let lifetime = ("auth.issuers.main.max_lifetime", "3days");
    let service = service_of(&[("main", &provider)], &[lifetime]).await;
    let token = async |sub: &str| provider.token(json!({"ttl": 2 * LONG, "claims": {"sub": sub}})).await;
    let (first, second, third) = (token("a").await, token("b").await, token("c").await);
    runs_of(&service, &first).await.ok();
    provider.stop().await;
    service.clock.advance(TimeDelta::hours(23));
    runs_of(&service, &second).await.ok();
    service.clock.advance(TimeDelta::hours(1));
    runs_of(&service, &third).await.assert_problem("token_keys_unavailable");
    service.finish().await;
}

#[tokio::test]
async fn a_provider_that_does_not_answer_in_time_stops_nobody() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let token = async |sub: &str| provider.token(json!({"claims": {"sub": sub}})).await;
    let [first, second] = [token("a").await, token("b").await];
    runs_of(&service, &first).await.ok();
    provider.control("/hang", json!({"milliseconds": 60_000})).await;
    let unknown = provider.token(json!({"header": {"kid": "unknown"}})).await;
    let mut waiting = Box::pin(runs_of(&service, &unknown));
    tokio::select! {
        answer = &mut waiting => panic!("{}", answer.text()),
        answer = runs_of(&service, &second) => drop(answer.ok()),
    }
    assert_refused(&waiting.await, "no key");
    service.finish().await;
}
