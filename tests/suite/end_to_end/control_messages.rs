//! Control messages between replicas: received at once, also while the store is busy.

use std::time::Duration;

use agent::record::RunControl;
use board::{Board, ControlMessage, RedisSettings};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tasks::supervision::Supervisor;
use test_support::databases::{Engine, TestDatabase};
use test_support::redis_server::PrivateServer;
use test_support::wait::until;
use values::tenant::TenantId;

use crate::support::gated::{GatedApp, id, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_message_does_not_wait_for_what_another_one_reads() {
    let Some(database) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let Some(server) = PrivateServer::start() else { return };
    // A read is given up after a third of a lease, which is longer than anything here is waited
    // for.
    let settings = [("board.url", &*server.url()), ("queue.lease", "3m")];
    let app = GatedApp::start(&database, &settings).await;
    let other = Board::open(&server.url(), RedisSettings::default(), &Supervisor::default())
        .await
        .unwrap();
    let tenant: TenantId = "default".parse().unwrap();
    let queued = app.begin("wait long", json!({})).await;
    app.gate.until_waiting(1).await;
    let light_request = request("sync", "wait for nothing", json!({}));
    let light = app.post("/v1/runs", &light_request);
    let mut rival = PgConnection::connect(database.url()).await.unwrap();
    let sending = async {
        app.gate.until_waiting(2).await;
        let running = app.get("/v1/runs?status=running").await;
        let running = running["data"].as_array().unwrap();
        let light = running.iter().find(|run| id(run) != id(&queued)).unwrap();
        let mut locking = rival.begin().await.unwrap();
        sqlx::raw_sql("select from run_queue for update")
            .execute(&mut *locking)
            .await
            .unwrap();
        let send = async |run, message| other.control_send(&tenant, id(run).parse().unwrap(), message).await;
        until("no process receives it", async || {
            send(&queued, ControlMessage::Refresh).await
        })
        .await;
        // Redis retains no message for a process that connects anew.
        until("no read waits for the row", async || {
            send(&queued, ControlMessage::Refresh).await;
            database.waiting_clients().await > 0
        })
        .await;
        assert!(send(light, ControlMessage::Control(RunControl::Cancel)).await);
        locking
    };
    let (ended, locking) = tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(light, sending) })
        .await
        .expect("the message waits behind the other one");
    assert_eq!(ended.json()["status"], "cancelled", "{}", ended.text());
    locking.rollback().await.unwrap();
    app.gate.open(2);
    assert_eq!(app.ended(&queued).await["status"], "completed");
    other.close().await;
    app.finish().await;
}
