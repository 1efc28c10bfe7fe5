//! Prompts that stand in the store, as another program may have left them, and that would cost a
//! worker its stack: they fail their run and nothing else.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::world::{ACCEPTS_ONLY, World, bytes};
use crate::end_to_end::on_every_store;
use crate::support::hostile::endless_prompt;
use crate::support::members::assert_members;
use crate::support::mock_model::Reply;
use crate::support::test_app::session_path;

on_every_store!(a_stored_prompt_that_cannot_be_rendered_fails_its_run_alone);

async fn a_stored_prompt_that_cannot_be_rendered_fails_its_run_alone(database: TestDatabase) {
    let world = World::new(database, |_| Reply::text("done")).await;
    let front = world.replica_with(&ACCEPTS_ONLY).await;
    let prompted = json!({"name": "prompted", "model": "mock/m", "system_prompt": "Be brief."});
    front.put_agent("prompted", prompted.clone()).await;
    front.put_agent("plain", json!({"model": "mock/m"})).await;
    let import = json!({"agent": "plain", "context_state": {"system_prompt": "Be brief."}});
    let imported = front.post("/v1/sessions", &import).await.ok();
    let context = front.get(&session_path(&imported, "")).await["context_state"].clone();

    let of_agent = front.begin("go", json!({"agent": "prompted"})).await;
    let base = json!({"agent": "plain", "base_session_id": imported["session_id"]});
    let of_session = front.begin("go", base.clone()).await;
    let well = front.begin("go", json!({"agent": "plain"})).await;

    let hostile = |stored: &Value| {
        let mut stored = stored.clone();
        stored["system_prompt"] = json!(endless_prompt(5_000));
        bytes(&world.database, &stored.to_string())
    };
    world.database.allow_updates().await;
    for (table, stored, rows) in [
        (
            "agent_versions",
            &prompted,
            "version = (select version from agents where name = 'prompted')",
        ),
        ("states", &context, "kind = 'context'"),
    ] {
        let sql = format!(
            "update {table} set encoding = 0, payload = {} where {rows}",
            hostile(stored)
        );
        world.database.execute(&sql).await.unwrap();
    }

    let worker = world.replica().await;
    for run in [&of_agent, &of_session, &worker.begin("again", base).await] {
        let ended = worker.ended(run).await;
        assert_members!(ended, {"status": "failed", "error/code": "prompt_not_rendered", "attempts": 1});
    }
    assert_eq!(worker.ended(&well).await["status"], "completed");
    assert_eq!(world.asked().len(), 1, "no model hears of such a prompt");
    front.finish().await;
    worker.finish().await;
}
