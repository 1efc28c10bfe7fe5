//! Files of a run while the store is unavailable: the run waits, as with its journal and its
//! commit.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::gate::Gate;
use test_support::logs::CapturedLog;
use test_support::wait::until;
use tracing::Level;
use values::json::Value;

use super::{assert_valid, file};
use crate::support::gated::request;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

/// Calls the tool that writes a file, and then ends.
fn model(request: &Value) -> Reply {
    if request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
        return Reply::text("done");
    }
    Reply::call("c1", "write_later", &json!({}))
}

/// On one thread, whose log lines it hears.
#[tokio::test]
async fn files_outlast_an_outage_of_the_store() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(database) = TestDatabase::new(engine).await {
            outlast(database).await;
        }
    }
}

async fn outlast(database: TestDatabase) {
    let (lines, _listening) = CapturedLog::listening(Level::DEBUG);
    let gate = Gate::new();
    let mock = MockModel::start(model).await;
    let tool = FakeTool::new("write_later", Behaviour::HeldBeforeWriting(Arc::clone(&gate)));
    let settings = [("runs.commit_patience", "20s"), ("store.acquire_timeout", "2s")];
    let app = TestApp::start_with_tools(database.url(), &mock, &settings, [&tool]).await;
    app.put_agent("echo", json!({"model": "mock/m", "tools": ["write_later"]}))
        .await;
    // A light run stores its files at its end, and one with durability `step` with its steps.
    for (round, mode, durability) in [(1, "sync", "session"), (2, "async", "step")] {
        let run = async {
            let body = request(mode, "go", json!({"durability": durability}));
            let run = app.post("/v1/runs", &body).await.ok();
            app.ended(&run).await
        };
        let outage = async {
            gate.until_waiting(1).await;
            let outage = database.begin_outage().await;
            gate.open(1);
            let waits = || lines.text().matches("the files of a run wait for the store").count();
            until("the files do not wait", async || waits() >= round).await;
            outage.end().await;
        };
        let (run, ()) = tokio::join!(run, outage);
        assert_members!(run, {"status": "completed", "attempts": 1});
        assert_valid(&app, &run["session_id"]).await;
        assert_eq!(file(&app, &run["session_id"], "a").await, "text");
    }
    app.finish().await;
}
