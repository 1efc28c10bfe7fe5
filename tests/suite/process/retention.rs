//! The commands that remove: sweeping by hand, deleting a tenant, and what they refuse.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::redis_server::PrivateServer;
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::text::assert_contains;

on_every_store!(
    a_sweep_removes_what_its_dry_run_listed,
    the_service_sweeps_by_itself,
    a_tenant_is_deleted_with_all_its_data,
);

/// Reads what the command printed, by name.
fn figure(printed: &str, name: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

async fn runs(home: &Home, count: usize) {
    for _ in 0..count {
        home.succeed(&["run", "What is 1 + 1?"]).await;
    }
}

async fn a_sweep_removes_what_its_dry_run_listed(database: TestDatabase) {
    let home = Home::new(database.url());
    runs(&home, 2).await;
    let off = home.run(&["gc"]).await;
    assert_contains!(off.stderr, "retention is off: neither `retention.max_age` nor");
    let unswept = off.stdout;
    assert!(unswept.starts_with("removed:\n"), "{unswept}");
    assert_eq!((figure(&unswept, "sessions"), figure(&unswept, "bytes")), (0, 0));
    let rules = ["--set", "retention.max_age=1ms", "--set", "retention.min_age=0s"];
    let planned = home.run(&[&["gc", "--dry-run"][..], &rules].concat()).await;
    assert!(!planned.stderr.contains("retention is off"), "{}", planned.stderr);
    let planned = planned.stdout;
    assert_eq!((figure(&planned, "sessions"), figure(&planned, "runs")), (2, 2));
    assert_eq!(database.number("select count(*) from sessions").await, 2);
    let swept = home.succeed(&[&["gc"][..], &rules].concat()).await;
    assert_eq!(planned.replace("would remove", "removed"), swept);
    for table in ["sessions", "runs", "history_segments", "states"] {
        assert_eq!(
            database.number(&format!("select count(*) from {table}")).await,
            0,
            "{table}"
        );
    }
}

async fn the_service_sweeps_by_itself(database: TestDatabase) {
    let home = Home::new(database.url())
        .variable("AGENT_RUNTIME__RETENTION__MAX_AGE", "1ms")
        .variable("AGENT_RUNTIME__RETENTION__MIN_AGE", "0s")
        .variable("AGENT_RUNTIME__RETENTION__INTERVAL", "100ms");
    runs(&home, 1).await;
    let service = Service::start(&home).await;
    let sessions = "select count(*) from sessions";
    until("nothing is swept", async || database.number(sessions).await == 0).await;
    service.stop().await;
}

async fn a_tenant_is_deleted_with_all_its_data(database: TestDatabase) {
    let home = Home::new(database.url());
    runs(&home, 1).await;
    let complaint = home.fail(&["tenants", "delete", "default"]).await;
    assert!(complaint.contains("--yes"), "{complaint}");
    home.succeed(&["keys", "create", "--tenant", "default"]).await;
    let complaint = home.fail(&["tenants", "delete", "default", "--yes"]).await;
    assert!(complaint.contains("make a key of another tenant first"), "{complaint}");
    let key = home.succeed(&["keys", "create", "--tenant", "other"]).await;
    assert_eq!(database.number("select count(*) from sessions").await, 1);
    let printed = home.succeed(&["tenants", "delete", "default", "--yes"]).await;
    assert!(printed.starts_with("removed the tenant default: "), "{printed}");
    for table in ["sessions", "runs", "history_segments", "states", "agent_versions"] {
        assert_eq!(
            database.number(&format!("select count(*) from {table}")).await,
            0,
            "{table}"
        );
    }
    let complaint = home.fail(&["tenants", "delete", "default", "--yes"]).await;
    assert_contains!(complaint, "there is nothing of a tenant default");
    let service = Service::start(&home).await.with_key(key.trim());
    let sessions: Value = service.get("/v1/sessions").await;
    assert_eq!(sessions["data"], json!([]));
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_removed_from_redis_as_well() {
    let Some(mut redis) = PrivateServer::start() else {
        return;
    };
    let mock = MockModel::start(|_| Reply::text("done")).await;
    let home = Home::with_file()
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__BOARD__URL", &redis.url());
    let service = Service::start(&home).await;
    let events = service.stream(json!({"input": "hi", "agent": "echo"})).await;
    drop(events);
    let keys = async || redis.command(&["DBSIZE"]);
    until("nothing is on the board", async || keys().await != ":0").await;
    service.stop().await;
    let printed = home.succeed(&["tenants", "delete", "default", "--yes"]).await;
    assert!(printed.contains("\nremoved from Redis: "), "{printed}");
    assert_eq!(keys().await, ":0");
    redis.stop();
    let printed = home.fail(&["tenants", "delete", "default", "--yes"]).await;
    assert!(printed.contains("nothing is removed from Redis"), "{printed}");
}
