//! Input that a server asks for during a call: the run waits for the caller, also across a restart.

use agent_runtime::json::Value;
use serde_json::json;

use super::server::McpServer;
use super::{ERAS, McpApp};
use crate::end_to_end::on_every_store;
use crate::support::databases::TestDatabase;

on_every_store!(
    a_run_waits_for_input_across_a_restart,
    input_is_checked_and_may_be_denied
);

fn answer(run: &Value, more: Value) -> Value {
    let call = &run["required_action"]["calls"][0];
    let mut answer = json!({"call_id": call["call_id"], "arguments_hash": call["arguments_hash"]});
    let Value::Object(more) = more else { panic!("{more}") };
    answer.as_object_mut().unwrap().extend(more);
    json!({"answers": [answer]})
}

/// The key of the question of a server.
fn key(run: &Value) -> String {
    let schema = &run["required_action"]["calls"][0]["response_schema"];
    schema["required"][0].as_str().unwrap().to_owned()
}

async fn a_run_waits_for_input_across_a_restart(database: TestDatabase) {
    for era in ERAS {
        for durability in ["session", "step"] {
            let server = McpServer::start(era);
            let url = server.url();
            let servers = [("box", url.as_str(), "")];
            let app = McpApp::start(&database, &servers).await;
            let calls = json!([["c1", "box_echo", {"text": "hi"}], ["c2", "box_ask", {}]]).to_string();
            let run = app
                .run_with(json!({"agent": "user", "input": calls, "durability": durability}))
                .await;
            assert_eq!(run["status"], "waiting", "{run:#}");
            let open = run["required_action"]["calls"].as_array().unwrap();
            assert_eq!(open.len(), 1, "{run:#}");
            assert_eq!(
                (&open[0]["kind"], &open[0]["reason"]),
                (&json!("input"), &json!("What is your name?"))
            );
            let key = key(&run);
            assert_eq!(
                open[0]["response_schema"]["properties"][&key]["required"],
                json!(["name"])
            );
            app.finish().await;

            // Another process continues the call.
            let app = McpApp::start(&database, &servers).await;
            let path = format!("/v1/runs/{}/answers", run["run_id"].as_str().unwrap());
            let body = answer(&run, json!({"result": {key: {"name": "Ada"}}}));
            let next = app.post(&path, &body).await.ok();
            // What the answer leaves out has the default of the schema.
            assert_eq!(next["output_text"], "echo: hi | Hello Dr. Ada!", "{next:#}");
            assert_eq!(
                server
                    .log()
                    .iter()
                    .filter(|line| line.starts_with("ask read") && line.contains("accept"))
                    .count(),
                1
            );
            app.finish().await;
        }
    }
}

async fn input_is_checked_and_may_be_denied(database: TestDatabase) {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::start(&database, &[("box", &server.url(), "")]).await;
        let run = app.call_tool(None, "box_ask", json!({})).await;
        let path = format!("/v1/runs/{}/answers", run["run_id"].as_str().unwrap());
        let key = key(&run);
        for (wrong, expected) in [
            (
                json!({"result": {&key: {"name": 7}}}),
                "it does not fit the schema of box_ask",
            ),
            (json!({"result": {}}), "it does not fit the schema of box_ask"),
            (
                json!({"result": {&key: {"name": "A"}}, "is_error": true}),
                "give it as `result`",
            ),
            (json!({"decision": "approve"}), "so it needs a `result` or is denied"),
        ] {
            let refused = app.post(&path, &answer(&run, wrong.clone())).await;
            assert_eq!(refused.status.as_u16(), 422, "{wrong}: {}", refused.text());
            assert!(refused.text().contains(expected), "{wrong}: {}", refused.text());
        }
        let denied = app.post(&path, &answer(&run, json!({"decision": "deny"}))).await.ok();
        assert_eq!(denied["output_text"], "The caller denied this call.", "{denied:#}");
        assert_eq!(server.count("ask asked"), 1);
        app.finish().await;
    }
}
