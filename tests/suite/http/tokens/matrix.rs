//! What each algorithm accepts and refuses, when it is the only one that is pinned.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use values::clock::{Clock as _, SystemClock};

use super::provider::Provider;
use super::{assert_refused, runs_of, service_of};
use crate::http::service::Service;

const ALGORITHMS: [&str; 6] = ["ES256", "ES384", "RS256", "RS512", "PS256", "EdDSA"];

/// Requests for tokens, and the words of their refusals; no words if they are accepted.
fn rows(now: DateTime<Utc>) -> Vec<(Value, &'static str)> {
    let at = |seconds: i64| now.timestamp() + seconds;
    let claims = |claims: Value| json!({"claims": claims});
    let times = |iat: i64, exp: i64| json!({"claims": {"iat": at(iat), "exp": at(exp)}});
    vec![
        (json!({}), ""),
        (claims(json!({"aud": ["https://other.example", super::AUDIENCE]})), ""),
        (claims(json!({"aud": null})), "`aud`"),
        (claims(json!({"aud": "https://other.example"})), "`aud` is another one"),
        (
            claims(json!({"aud": "https://agents.example.org/"})),
            "`aud` is another one",
        ),
        (claims(json!({"iss": null})), "issuer"),
        (claims(json!({"iss": "https://login.example.org"})), "issuer"),
        (claims(json!({"sub": null})), "`sub`"),
        (claims(json!({"exp": null})), "`exp`"),
        (claims(json!({"iat": null})), "`iat`"),
        (claims(json!({"exp": at(60).to_string()})), "`exp`"),
        (claims(json!({"nbf": at(-60).to_string()})), "`nbf`"),
        (claims(json!({"nbf": at(-60)})), ""),
        (claims(json!({"nbf": at(120)})), "not valid yet"),
        (claims(json!({"act": "somebody"})), "`act`"),
        (times(120, 240), "not valid yet"),
        (times(-600, -10), ""),
        (times(-600, -60), "expired"),
        (times(-60, 25 * 3_600), "`max_lifetime`"),
        (json!({"header": {"typ": "JWT"}}), "type"),
        (json!({"header": {"typ": null}}), "type"),
        (json!({"header": {"typ": "application/AT+JWT"}}), ""),
        (
            json!({"header": {"jku": "https://evil.example/jwks", "jwk": {"kty": "oct", "k": "AA"}}}),
            "",
        ),
        (json!({"header": {"kid": null}}), ""),
        (json!({"header": {"crit": ["exp"], "exp": 1}}), "`crit`"),
        (json!({"sign": "none"}), "algorithm"),
        (json!({"sign": "hs256-with-public-key"}), "algorithm"),
        (json!({"sign": "other-key"}), "signature"),
        (claims(json!({"padding": "x".repeat(8_192)})), "8 KiB"),
    ]
}

async fn check(service: &Service, provider: &Provider, algorithm: &str) {
    for (mut asked, words) in rows(SystemClock.now()) {
        asked["alg"] = json!(algorithm);
        let token = provider.token(asked.clone()).await;
        // The second answer comes from the cache.
        for _ in 0..2 {
            let answer = runs_of(service, &token).await;
            if words.is_empty() {
                assert_eq!(answer.status, 200, "{algorithm} {asked}: {}", answer.text());
            } else {
                assert_refused(&answer, words);
            }
        }
    }
    for other in ALGORITHMS.into_iter().filter(|other| *other != algorithm) {
        let token = provider.token(json!({"alg": other})).await;
        assert_refused(&runs_of(service, &token).await, "algorithm");
        // The signature of one algorithm under the name of another.
        let (_, rest) = token.split_once('.').unwrap();
        let own = provider.token(json!({"alg": algorithm})).await;
        let (header, _) = own.split_once('.').unwrap();
        assert_refused(&runs_of(service, &format!("{header}.{rest}")).await, "signature");
    }
}

#[tokio::test]
async fn each_algorithm_accepts_whole_tokens_and_no_others() {
    let Some(provider) = Provider::start(&ALGORITHMS).await else {
        return;
    };
    for algorithm in ALGORITHMS {
        let pinned = format!("[{algorithm:?}]");
        let service = service_of(&[("main", &provider)], &[("auth.issuers.main.algorithms", &pinned)]).await;
        check(&service, &provider, algorithm).await;
        service.finish().await;
    }
}

#[tokio::test]
async fn texts_that_are_no_tokens_are_refused() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    let token = provider.token(json!({})).await;
    for text in ["a.b", "a.b.c", "..", &format!("{token}.x"), &token[..token.len() - 4]] {
        let answer = runs_of(&service, text).await;
        answer.assert_problem("invalid_token");
        assert!(!answer.text().contains(&token), "{}", answer.text());
    }
    // A text without a dot, and one that begins as a key, are wrong keys.
    for key in ["sk-1", "ark_1.2.3"] {
        runs_of(&service, key).await.assert_problem("invalid_api_key");
    }
    service.try_get("/v1/runs").await.assert_problem("missing_api_key");
    service.finish().await;
}
