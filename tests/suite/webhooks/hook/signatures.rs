//! Signatures in whole runs: receivers can check what they get with any of the secrets in force.

use std::collections::BTreeSet;
use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::json;
use sha2::Sha256;
use store::keys::Scope;
use test_support::databases::TestDatabase;

use super::setup::{LOCAL, Service, agent};
use crate::support::answer::{Answer, read, with_json};
use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;
use crate::support::webhook_receiver::{Received, WebhookReceiver};

const NEW: [u8; 32] = [1; 32];
const OLD: [u8; 24] = [2; 24];

/// Checks as a receiver does: by the headers, the bytes of the body and a secret.
fn is_signed(message: &Received, secret: &[u8]) -> bool {
    let head = format!(
        "{}.{}.",
        message.header("webhook-id"),
        message.header("webhook-timestamp")
    );
    let content = [head.as_bytes(), &message.raw].concat();
    message.header("webhook-signature").split(' ').any(|signature| {
        let given = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        let code = <Hmac<Sha256>>::new_from_slice(secret).unwrap().chain_update(&content);
        code.verify_slice(&given).is_ok()
    })
}

#[tokio::test]
async fn every_message_is_signed_with_each_secret_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let [new, old] = [&NEW[..], &OLD[..]].map(|secret| format!("whsec_{}", STANDARD.encode(secret)));
    fs::write(&file, format!("{new}\n{old}\n")).unwrap();
    let receiver = WebhookReceiver::content().await;
    let settings = [
        &LOCAL[..],
        &[
            ("webhooks.secrets.main.file", file.to_str().unwrap()),
            ("webhooks.secrets.main.tenants", "[\"default\"]"),
        ],
    ]
    .concat();
    let service = Service::start(MockModel::echoing().await, &settings).await;
    let points = ["before_execution", "before_step", "after_step"];
    service
        .attach(&receiver.url("/"), &points, &json!({"secret": "main"}))
        .await;
    let result = service.run("hi").await;
    assert_eq!(result["status"], "completed", "{result:#}");

    let received = receiver.received();
    assert_eq!(receiver.points(), points);
    let ids: BTreeSet<_> = received.iter().map(|message| message.header("webhook-id")).collect();
    assert_eq!(ids.len(), points.len());
    for message in &received {
        assert!(is_signed(message, &NEW) && is_signed(message, &OLD));
        assert!(!is_signed(message, &[3; 32]));
        let sent_at: values::clock::Timestamp = serde_json::from_value(message.json()["timestamp"].clone()).unwrap();
        assert_eq!(message.header("webhook-timestamp"), sent_at.timestamp().to_string());
    }
    let definition = service.app.get("/v1/agents/hooked").await.to_string();
    assert!(!definition.contains("whsec_"), "{definition}");
    service.app.finish().await;
}

#[tokio::test]
async fn an_agent_whose_webhook_can_t_be_made_is_refused() {
    let receiver = WebhookReceiver::content().await;
    let service = Service::start(MockModel::echoing().await, &[("webhooks.secrets.main.env", "UNSET")]).await;
    for (url, secret, expected) in [
        (receiver.url("/"), None, "url: its scheme must be https"),
        ("https://127.0.0.1/".to_owned(), None, "url: its address is not public"),
        (
            "https://example.org/".to_owned(),
            Some("main"),
            "the operator has not set the secret \"main\"",
        ),
        (
            "https://example.org/".to_owned(),
            Some("other"),
            "no secret is named \"other\"",
        ),
    ] {
        let more = secret.map_or(json!({}), |name| json!({"secret": name}));
        let answer = service
            .app
            .put("/v1/agents/refused", &agent(&url, &["on_stop"], &more))
            .await;
        answer.assert_problem("invalid_hook");
        assert!(answer.text().contains("webhook"), "{}", answer.text());
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(expected), "{url}: {detail}");
        assert!(!detail.contains("UNSET"), "{detail}");
    }
    assert!(receiver.received().is_empty());
    service.app.finish().await;
}

#[tokio::test]
async fn a_secret_that_no_longer_signs_for_a_tenant_fails_the_runs_of_its_agents() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, format!("whsec_{}", STANDARD.encode(NEW))).unwrap();
    let receiver = WebhookReceiver::content().await;
    let (database, mock) = (TestDatabase::sqlite(), MockModel::echoing().await);
    for (tenants, status) in [
        ("[\"default\"]", "completed"),
        ("[\"acme\"]", "failed"),
        ("[]", "failed"),
    ] {
        let secret = [
            ("webhooks.secrets.main.file", file.to_str().unwrap()),
            ("webhooks.secrets.main.tenants", tenants),
        ];
        let app = TestApp::start(database.url(), &mock, &[&LOCAL[..], &secret].concat()).await;
        if status == "completed" {
            let definition = agent(&receiver.url("/"), &["on_stop"], &json!({"secret": "main"}));
            app.put_agent("hooked", definition).await;
        }
        let run = app.run_with(json!({"agent": "hooked", "input": "Hello"})).await;
        assert_eq!(run["status"], status, "{tenants}: {run:#}");
        if status == "failed" {
            let message = run["error"]["message"].as_str().unwrap();
            assert!(message.contains("no secret is named \"main\""), "{run:#}");
        }
        app.finish().await;
    }
    let [message] = &receiver.received()[..] else {
        panic!("one run may sign")
    };
    assert_eq!(message.json()["tenant"], "default");
    assert!(is_signed(message, &NEW));
}

#[tokio::test]
async fn a_secret_signs_for_its_tenants_and_is_unknown_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, format!("whsec_{}", STANDARD.encode(NEW))).unwrap();
    let settings = [
        ("webhooks.secrets.main.file", file.to_str().unwrap()),
        ("webhooks.secrets.main.tenants", "[\"acme\"]"),
    ];
    let service = Service::start(MockModel::echoing().await, &settings).await;
    let definition = |secret: &str| agent("https://example.org/", &["on_stop"], &json!({"secret": secret}));
    for (tenant, is_theirs) in [("acme", true), ("rival", false)] {
        let (_, key) = service.app.make_key(tenant, &[Scope::Admin]).await;
        let put = async |secret: &str| {
            let request = service.app.request(Method::PUT, "/v1/agents/signed").bearer_auth(&key);
            read(with_json(request, &definition(secret))).await
        };
        let answer = put("main").await;
        assert_eq!(answer.status.is_success(), is_theirs, "{tenant}: {}", answer.text());
        if !is_theirs {
            answer.assert_problem("invalid_hook");
            let detail = |answer: &Answer| answer.json()["detail"].as_str().unwrap().replace("main", "other");
            assert_eq!(detail(&answer), detail(&put("other").await));
        }
    }
    service.app.finish().await;
}
