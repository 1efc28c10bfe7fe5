//! Input that a server asks for during a call: the run waits for the caller, also across a restart.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::server::{Era, McpServer};
use super::{ERAS, McpApp};
use crate::end_to_end::on_every_store;
use crate::http::mcp::Client;
use crate::support::members::{assert_members, extended};
use crate::support::test_app::run_path;

on_every_store!(
    a_run_waits_for_input_across_a_restart,
    input_is_checked_and_may_be_denied,
    a_client_of_the_service_is_asked_what_the_server_asks,
);

#[expect(clippy::needless_pass_by_value, reason = "callers write the fields down right there")]
fn answer(run: &Value, more: Value) -> Value {
    let call = &run["required_action"]["calls"][0];
    let answer = json!({"call_id": call["call_id"], "arguments_hash": call["arguments_hash"]});
    json!({"answers": [extended(answer, &more)]})
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
            assert_members!(open[0], {"kind": "input", "reason": "What is your name?"});
            let key = key(&run);
            assert_eq!(
                open[0]["response_schema"]["properties"][&key]["required"],
                json!(["name"])
            );
            app.finish().await;

            // Another process continues the call.
            let app = McpApp::start(&database, &servers).await;
            let path = run_path(&run, "/answers");
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
        let path = run_path(&run, "/answers");
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

/// The question of a server passes through `/mcp` with its schema, and so does the answer.
async fn a_client_of_the_service_is_asked_what_the_server_asks(database: TestDatabase) {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::start(&database, &[("box", &server.url(), "")]).await;
        let client = Client::asking(&app);
        let all = json!([["c/1", "box_ask", {"what": "name"}], ["c2", "box_ask", {"what": "both"}]]);
        // An older server asks one question at a time.
        let calls = if era == Era::Modern { all } else { json!([all[0]]) };
        let call = json!({"name": "user", "arguments": {"input": calls.to_string()}});
        let asked = client.ok("tools/call", call.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked:#}");
        let (name, town) = (
            json!({"name": {"type": "string"}, "title": {"type": "string", "default": "Dr."}}),
            json!({"town": {"type": "string", "enum": ["Bern", "Chur"]}, "since": {"type": "integer"}}),
        );
        let mut responses = json!({});
        let questions = asked["inputRequests"].as_object().unwrap();
        for (key, question) in questions {
            let params = &question["params"];
            let schema = &params["requestedSchema"];
            let is_of_both = key.contains("/c2/");
            let (properties, required, content) = if key.ends_with("/where") {
                (&town, "town", json!({"town": "Chur", "since": 1990}))
            } else {
                (&name, "name", json!({"name": if is_of_both { "Bob" } else { "Ada" }}))
            };
            assert_eq!(
                (&question["method"], &schema["properties"], &schema["required"]),
                (&json!("elicitation/create"), properties, &json!([required])),
                "{question:#}"
            );
            let expected = match (is_of_both, required) {
                (false, _) => "The tool box_ask of the agent user asks: What is your name?",
                (true, "town") => "The tool box_ask of the agent user asks (1 of 2): Where do you live?",
                (true, _) => "The tool box_ask of the agent user asks (2 of 2): What is your name?",
            };
            assert_eq!(params["message"], expected);
            responses[key] = json!({"action": "accept", "content": content});
        }
        assert_eq!(questions.len(), if era == Era::Modern { 3 } else { 1 }, "{asked:#}");
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = responses.clone();
        let done = client.ok("tools/call", retry.clone()).await;
        let expected = match era {
            Era::Modern => "Hello Dr. Ada! | Hello Dr. Bob of Chur since 1990!",
            _ => "Hello Dr. Ada!",
        };
        assert_eq!(done["structuredContent"]["output"], expected, "{done:#}");

        // Who declines one question of a call denies the call.
        let asked = client.ok("tools/call", call).await;
        retry["requestState"] = asked["requestState"].clone();
        let keys = asked["inputRequests"].as_object().unwrap().keys();
        let all = keys.zip(responses.as_object().unwrap().values());
        let all: serde_json::Map<_, _> = all.map(|(key, response)| (key.clone(), response.clone())).collect();
        retry["inputResponses"] = Value::Object(all);
        let mut all = retry["inputResponses"].as_object_mut().unwrap().iter_mut();
        let (_, declined) = all
            .find(|(key, _)| era == Era::Legacy || key.ends_with("/where"))
            .unwrap();
        *declined = json!({"action": "decline"});
        let done = client.ok("tools/call", retry).await;
        let expected = match era {
            Era::Modern => "Hello Dr. Ada! | The caller denied this call.",
            _ => "The caller denied this call.",
        };
        assert_eq!(done["structuredContent"]["output"], expected, "{done:#}");
        app.finish().await;
    }
}
