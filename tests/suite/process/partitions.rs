//! A database whose large tables are partitioned by tenant: `scripts/partition-by-tenant.sql`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::binary::Home;
use super::service::{Service, read};
use crate::support::mock_model::MockModel;

const SCRIPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/partition-by-tenant.sql"));
const TENANTS: usize = 6;

/// A tenant with its key.
struct Caller<'a> {
    service: &'a Service,
    key: &'a str,
}

impl Caller<'_> {
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        read(self.service.request(method, path).bearer_auth(self.key), body).await
    }

    /// Makes a run that must complete; returns its session.
    async fn run(&self, base: Option<&str>, durability: &str) -> String {
        let mut body = json!({"agent": "echo", "input": "hello", "durability": durability});
        if let Some(base) = base {
            body["base_session_id"] = json!(base);
        }
        let (_, ended) = self.call(Method::POST, "/v1/runs", Some(body)).await;
        assert_eq!(ended["status"], "completed", "{ended:#}");
        ended["session_id"].as_str().unwrap().to_owned()
    }

    /// Makes a conversation with a fork; returns its tip.
    async fn converse(&self) -> String {
        let root = self.run(None, "session").await;
        self.run(Some(&root), "step").await;
        self.run(Some(&root), "session").await
    }

    async fn messages(&self, session_id: &str) -> usize {
        let path = format!("/v1/sessions/{session_id}/messages");
        let (status, page) = self.call(Method::GET, &path, None).await;
        assert_eq!(status, StatusCode::OK, "{page:#}");
        page["data"].as_array().unwrap().len()
    }
}

fn callers<'a>(service: &'a Service, keys: &'a [String]) -> impl Iterator<Item = Caller<'a>> {
    keys.iter().map(move |key| Caller { service, key })
}

/// Counts the rows of the large tables.
async fn rows(database: &TestDatabase) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["sessions", "runs", "history_segments", "history_branches", "states"] {
        counts.push(database.number(&format!("select count(*) from {table}")).await);
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_can_be_partitioned_by_tenant() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = MockModel::echoing().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let mut keys = Vec::new();
    for tenant in 0..TENANTS {
        let tenant = format!("tenant{tenant}");
        let scopes = "runs:write,sessions:read,admin";
        let printed = home
            .succeed(&["keys", "create", "--tenant", &tenant, "--scope", scopes])
            .await;
        let key = printed.split_whitespace().find(|word| word.starts_with("ark_"));
        keys.push(key.unwrap().to_owned());
    }
    let service = Service::start(&home).await;
    let mut tips = Vec::new();
    for caller in callers(&service, &keys) {
        tips.push(caller.converse().await);
    }
    service.stop().await;

    let before = rows(&database).await;
    database.execute(SCRIPT).await.unwrap();
    assert_eq!(rows(&database).await, before);
    let used = "select count(distinct tableoid) from sessions";
    assert!(database.number(used).await > 1);
    let refused = database.execute("update sessions set tenant = tenant").await;
    assert!(refused.is_err(), "the triggers are gone");

    let service = Service::start(&home).await;
    for (caller, tip) in callers(&service, &keys).zip(&tips) {
        assert_eq!(caller.messages(tip).await, 4);
        let next = caller.run(Some(tip), "session").await;
        assert_eq!(caller.messages(&next).await, 6);
        let other = caller.converse().await;
        let (status, body) = caller
            .call(Method::DELETE, &format!("/v1/sessions/{other}"), None)
            .await;
        assert!(status.is_success(), "{body:#}");
        let (status, _) = caller.call(Method::GET, &format!("/v1/sessions/{other}"), None).await;
        assert!(status.is_client_error());
        // Sessions of another tenant are not there.
        let elsewhere = Caller {
            service: &service,
            key: &keys[0],
        };
        let (status, _) = elsewhere.call(Method::GET, &format!("/v1/sessions/{next}"), None).await;
        assert_eq!(status.is_success(), caller.key == keys[0]);
    }
    service.stop().await;
    let (sessions, runs) = (rows(&database).await[0], rows(&database).await[1]);
    let tenants = i64::try_from(TENANTS).unwrap();
    // Of four further runs of each tenant, one was removed with its session.
    assert_eq!((sessions, runs), (before[0] + 3 * tenants, before[1] + 3 * tenants));
}
