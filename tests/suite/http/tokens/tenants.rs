//! What the claims of a token decide: the tenant, the scopes, the limits, and what a run records.

use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;

use super::provider::Provider;
use super::{assert_refused, runs_of, service_of, with_token};
use crate::http::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::test_app::run_path;

async fn start_run(service: &Service, token: &str, agent: &str) -> Value {
    let request = with_token(service, Method::POST, "/v1/runs", token);
    let body = json!({"agent": agent, "input": "hi"});
    read(with_json(request, &body)).await.json()
}

#[tokio::test]
async fn two_issuers_may_have_the_same_key_id() {
    let (Some(one), Some(two)) = (Provider::start(&["ES256"]).await, Provider::start(&["ES256"]).await) else {
        return;
    };
    let only_acme = ("auth.issuers.two.tenants", r#"["acme-*"]"#);
    let service = service_of(&[("one", &one), ("two", &two)], &[only_acme]).await;
    let acme = one.token(json!({})).await;
    let test = two.token(json!({"claims": {"tenant": "acme-test"}})).await;
    let run = start_run(&service, &acme, "demo").await;
    assert_eq!(run["created_by"]["issuer"], one.issuer);
    assert_eq!(runs_of(&service, &acme).await.ok()["data"][0]["run_id"], run["run_id"]);
    assert_eq!(runs_of(&service, &test).await.ok()["data"], json!([]));
    // Both keys have the id `k1`. Neither signs for the other issuer.
    let forged = two.token(json!({"claims": {"iss": one.issuer}})).await;
    assert_refused(&runs_of(&service, &forged).await, "signature");
    // An issuer may not name the tenants of the other one.
    let forged = two.token(json!({"claims": {"tenant": "acme"}})).await;
    assert_refused(&runs_of(&service, &forged).await, "`tenant`");
    service.finish().await;
}

#[tokio::test]
async fn a_tenant_that_is_missing_or_forged_is_refused() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let service = service_of(&[("main", &provider)], &[]).await;
    for tenant in [
        Value::Null,
        json!(""),
        json!("Acme"),
        json!("a/b"),
        json!("acme "),
        json!(["acme"]),
        json!({"name": "acme"}),
        json!(7),
        json!(true),
        json!("x".repeat(65)),
    ] {
        let token = provider.token(json!({"claims": {"tenant": tenant}})).await;
        assert_refused(&runs_of(&service, &token).await, "`tenant`");
    }
    let token = provider.token(json!({})).await;
    let (head, _) = token.rsplit_once('.').unwrap();
    let other = provider.token(json!({"claims": {"tenant": "globex"}})).await;
    let (_, signature) = other.rsplit_once('.').unwrap();
    assert_refused(&runs_of(&service, &format!("{head}.{signature}")).await, "signature");
    service.finish().await;
}

#[tokio::test]
async fn a_run_records_its_caller_and_a_token_has_its_scopes_and_limits_only() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let settings = [
        (r#"auth.issuers.main.scopes."agents.run""#, "runs:write"),
        (r#"auth.issuers.main.scopes."agents.read""#, "sessions:read"),
        (r#"auth.issuers.main.required."/azp""#, "gateway"),
        ("auth.issuers.main.limits_claim", "/plan"),
        ("limits.profiles.trial.agents", r#"["other"]"#),
        ("limits.profiles.full.max_steps", "9"),
    ];
    let service = service_of(&[("main", &provider)], &settings).await;
    let token = async |plan: &str, scope: Value, azp: &str| {
        let claims = json!({"plan": plan, "scope": scope, "azp": azp, "sub": "user-17", "act": {"sub": "assistant"}});
        provider.token(json!({"claims": claims})).await
    };
    let full = token("full", json!(["agents.run", "agents.read"]), "gateway").await;
    let run = start_run(&service, &full, "demo").await;
    let creator = json!({
        "issuer": provider.issuer, "sub": "user-17", "azp": "gateway", "act": {"sub": "assistant"},
    });
    assert_eq!(run["created_by"], creator, "{run:#}");
    assert_eq!(runs_of(&service, &full).await.ok()["data"][0]["created_by"], creator);
    let path = run_path(&run, "");
    let shown = read(with_token(&service, Method::GET, &path, &full)).await.ok();
    assert_eq!(shown["created_by"], creator);
    let (key_id, secret) = service.make_key("acme", &[Scope::RunsWrite]).await;
    let by_key = start_run(&service, &secret, "demo").await;
    assert_eq!(by_key["created_by"], json!({"key_id": key_id}));
    let me = read(with_token(&service, Method::GET, "/v1/me", &full)).await.ok();
    assert_eq!((&me["requires_key"], &me["key"]), (&json!(true), &Value::Null));
    assert_eq!(
        (&me["token"]["sub"], &me["token"]["runs"]["max_steps"]),
        (&json!("user-17"), &json!(9))
    );
    assert_eq!(me["scopes"], json!(["runs:write", "sessions:read"]));

    let trial = token("trial", json!("agents.run"), "gateway").await;
    assert_eq!(start_run(&service, &trial, "demo").await["code"], "not_allowed");
    let answer = runs_of(&service, &trial).await;
    answer.assert_problem("missing_scope");
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.contains(r#"error="insufficient_scope", scope="agents.read""#),
        "{challenge}"
    );
    // The service's own names mean nothing to this issuer.
    let own = token("full", json!("runs:write sessions:read admin"), "gateway").await;
    runs_of(&service, &own).await.assert_problem("missing_scope");
    assert_refused(
        &runs_of(&service, &token("huge", json!("agents.read"), "gateway").await).await,
        "`plan`",
    );
    assert_refused(
        &runs_of(&service, &token("full", json!("agents.read"), "evil").await).await,
        "`azp`",
    );
    service.finish().await;
}
