//! A process that reads from a database which takes no writes, as a standby of PostgreSQL.

use reqwest::Method;
use serde_json::json;
use test_support::databases::TestDatabase;

use super::binary::Home;
use super::service::Service;
use crate::support::mock_model::MockModel;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_reads_where_it_cannot_write() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = MockModel::echoing().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let writer = Service::start(&home).await;
    let run = writer.run("echo", None, "hello").await;
    writer.stop().await;
    let read_only = "do $$ begin execute format('alter database %I set default_transaction_read_only = on', \
                     current_database()); end $$";
    database.execute(read_only).await.unwrap();

    let home = home
        .variable("AGENT_RUNTIME__STORE__MIGRATE", "false")
        .variable("AGENT_RUNTIME__RETENTION__INTERVAL", "0s");
    let reader = Service::start_with(&home, &["--role", "api"]).await;
    let [session_id, run_id] = ["session_id", "run_id"].map(|key| run[key].as_str().unwrap());
    assert_eq!(reader.get(&format!("/v1/runs/{run_id}")).await, run);
    let session = reader.get(&format!("/v1/sessions/{session_id}")).await;
    assert_eq!(session["session_id"], run["session_id"]);
    for path in ["/v1/runs", "/v1/sessions", "/readyz"] {
        reader.get(path).await;
    }
    let body = json!({"agent": "echo", "input": "more", "base_session_id": session_id});
    let (status, refused) = reader.call(Method::POST, "/v1/runs", Some(body)).await;
    assert!(!status.is_success(), "{refused:#}");
    reader.stop().await;
}
