//! Runs the agent of docs/webhook-hook.md against a receiver that replies as the page shows, and
//! compares every message that the page shows.

use std::collections::{BTreeMap, BTreeSet};

use agent::HookPoint;
use agent::definition::AgentDefinition;
use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::blocks::{Block, blocks, read};
use super::known::{Known, parse_shown};
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

const PAGE: &str = "docs/webhook-hook.md";

/// The address that the page's agent names.
const ADDRESS: &str = "https://hooks.example.org/agents";

/// Returns the JSON that the page shows under a kind of mark, by the rest of the mark.
fn shown(blocks: &[Block], kind: &str) -> BTreeMap<String, Value> {
    let marked = blocks.iter().filter_map(|block| {
        let point = block.mark.as_deref()?.strip_prefix(kind)?;
        let json = parse_shown(&block.text).unwrap_or_else(|error| panic!("{PAGE}:{}: {error}", block.line));
        Some((point.to_owned(), json))
    });
    marked.collect()
}

/// Returns the agent of the page with the receiver and the mock instead of what it names.
fn agent(blocks: &[Block], receiver: &WebhookReceiver) -> Value {
    let block = blocks
        .iter()
        .find(|block| block.mark.as_deref() == Some("agent"))
        .unwrap();
    let definition: AgentDefinition = toml::from_str(&block.text).unwrap();
    let definition = serde_json::to_string(&definition).unwrap();
    assert!(definition.contains(ADDRESS), "{definition}");
    let mut definition: Value = serde_json::from_str(&definition.replace(ADDRESS, &receiver.url("/agents"))).unwrap();
    definition["model"] = json!("mock/m");
    definition
}

#[tokio::test]
async fn the_page_on_webhooks_shows_what_is_sent() {
    let page = read(PAGE);
    let blocks = blocks(&page);
    let messages = shown(&blocks, "message ");
    let mut answers = shown(&blocks, "answer ");
    let points = HookPoint::ALL.iter().map(|point| point.as_str().to_owned());
    assert_eq!(messages.keys().cloned().collect::<BTreeSet<_>>(), points.collect());
    assert!(!answers.is_empty());

    let receiver = WebhookReceiver::start(move |message| match answers.remove(&message.point()) {
        Some(answer) => Reaction::Json(answer),
        None => Reaction::Status(204, String::new()),
    })
    .await;
    let mock = MockModel::start(|request| {
        let is_sent = request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["role"] == "tool");
        if is_sent {
            Reply::text("Nothing can be divided by zero.")
        } else {
            Reply::call("call_1", "calculator", &json!({"expression": "6 / 0"}))
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let settings = [
        ("webhooks.allow_private_addresses", "true"),
        ("webhooks.allow_http", "true"),
        ("webhooks.secrets.main.file", secret.to_str().unwrap()),
        ("webhooks.secrets.main.tenants", "[\"*\"]"),
    ];
    let database = TestDatabase::sqlite();
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent("clerk", agent(&blocks, &receiver)).await;
    let result = app
        .run_with(json!({"agent": "clerk", "input": "What is 6 divided by 0?"}))
        .await;
    assert_eq!(result["status"], "completed", "{result:#}");

    let mut known = Known::default();
    let mut left: BTreeMap<String, Value> = messages;
    for received in receiver.received() {
        let given = received.json();
        // The page shows the first message of each point.
        if let Some(shown) = left.remove(&received.point()) {
            let checked = known.check_json("", &shown, &given);
            checked.unwrap_or_else(|fault| panic!("{PAGE}: {}: {fault}\n{given:#}", received.point()));
        }
    }
    assert!(left.is_empty(), "never sent: {:?}", left.keys());
    app.finish().await;
}
