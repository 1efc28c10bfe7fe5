//! Tokens of an identity provider from an operator's side: accepted, recorded, and revoked while
//! the service runs. The log names their subjects, and has no token.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;

use super::binary::Home;
use super::service::{Service, read};
use crate::end_to_end::on_every_store;
use crate::http::tokens::provider::Provider;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(a_revocation_ends_the_tokens_of_a_subject);

async fn a_revocation_ends_the_tokens_of_a_subject(database: TestDatabase) {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let home = Home::new(database.url())
        .variable("AGENT_RUNTIME__LOG__FORMAT", "json")
        .variable("AGENT_RUNTIME__LOG__FILTER", "debug");
    let issuer = &provider.issuer;
    let settings = format!(
        "[auth.issuers.corporate]\nissuer = '{issuer}'\naudience = ['https://agents.example.org']\n\
         tenant_claim = '/tenant'\n"
    );
    home.write("agent-runtime.toml", &settings);
    let service = Service::start(&home).await;
    service.refused(Method::GET, "/v1/runs", None, "missing_api_key").await;
    let token = async |sub: &str| provider.token(json!({"claims": {"sub": sub}})).await;
    let [one, two, three] = [token("one").await, token("two").await, token("three").await];
    let runs = async |token: &str| -> (StatusCode, Value) {
        read(service.request(Method::GET, "/v1/runs").bearer_auth(token), None).await
    };
    for token in [&one, &two, &three] {
        assert_eq!(runs(token).await.0, StatusCode::OK);
    }
    let revoke = ["tokens", "revoke", "--issuer"];
    home.succeed(&[&revoke[..], &["corporate", "--sub", "one"]].concat())
        .await;
    // An issuer may be named by its `iss`. The tokens of this subject were issued later.
    let earlier = [issuer, "--sub", "two", "--before", "2026-01-01T00:00:00Z"];
    home.succeed(&[&revoke[..], &earlier].concat()).await;
    until("the token is still accepted", async || {
        runs(&one).await.0 == StatusCode::UNAUTHORIZED
    })
    .await;
    assert_eq!(runs(&one).await.1["code"], "invalid_token");
    for token in [&two, &three] {
        assert_eq!(runs(token).await.0, StatusCode::OK);
    }
    let complaint = home.fail(&[&revoke[..], &["other", "--sub", "one"]].concat()).await;
    assert_contains!(complaint, "no identity provider other");
    let forged = format!("{}x", &one[..one.len() - 4]);
    assert_eq!(runs(&forged).await.1["code"], "invalid_token");

    let log = service.stop().await.stderr;
    assert_contains!(log, r#""subject":"three""#);
    for token in [&one, &two, &three, &forged] {
        for part in token.split('.') {
            assert_lacks!(log, part);
        }
    }
}
