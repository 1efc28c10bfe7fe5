//! Features of a single provider, through the whole service: its own tools, the choice among tools,
//! its files, and the error if it can't be reached.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, extended};
use crate::support::mock_model::{MockModel, Reply};
use crate::support::table::rows;
use crate::support::test_app::{TestApp, run_path, session_path};
use crate::support::text::assert_contains;

on_every_store!(
    tools_of_the_provider_are_offered_and_their_use_is_shown,
    a_definition_that_no_model_can_follow_is_refused,
    a_file_of_the_provider_reaches_its_model_and_stays_in_the_session,
    thinking_in_the_words_is_no_part_of_the_answer,
    a_provider_that_refuses_is_named_with_its_host,
);

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

async fn tools_of_the_provider_are_offered_and_their_use_is_shown(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if request["tool_choice"] == json!("auto") {
            let searched = json!({"executed_tools": [{"index": 0, "type": "search"}], "content": "found"});
            return Reply::Events(vec![chunk(&searched, None), chunk(&json!({}), Some("stop"))]);
        }
        Reply::call("c1", "calculator", &json!({"expression": "1+1"}))
    });
    let mock = mock.await;
    let prices = [
        ("prices.'mock/m'.input", "1000.0"),
        ("prices.'mock/m'.output", "1000.0"),
    ];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    let search = json!({"type": "browser_search", "depth": 2});
    let agent = json!({"model": "mock/m", "tools": ["calculator"], "provider_tools": {"mock": [search]},
        "parameters": {"tool_choice": {"tool": "calculator"}}});
    app.put_agent("searcher", agent.clone()).await;
    let stored = app.get("/v1/agents/searcher").await;
    assert_members!(stored, {"provider_tools": agent["provider_tools"], "parameters": agent["parameters"]});
    let run = app.run_with(json!({"agent": "searcher", "input": "go"})).await;
    assert_members!(run, {"status": "completed", "output_text": "found"});

    let requests = mock.requests();
    let choices: Vec<_> = requests.iter().map(|request| &request["tool_choice"]).collect();
    let forced = json!({"type": "function", "function": {"name": "calculator"}});
    assert_eq!(choices, [&forced, &json!("auto")], "a call is forced once");
    for request in &requests {
        let tools = request["tools"].as_array().unwrap();
        assert_eq!((tools.len(), &tools[1]), (2, &search));
    }
    let steps = app.get(&run_path(&run, "/steps")).await;
    let used = |step: usize| steps["data"][step].get("provider_tool_calls").cloned();
    assert_eq!((used(0), used(1)), (None, Some(json!({"search": 1}))));
    // A search is billed apart, and nobody knows its price.
    let usage = |step: usize| &steps["data"][step]["usage"];
    assert!(
        usage(0)["cost"].is_f64() && usage(0).get("cost_known_part").is_none(),
        "{steps:#}"
    );
    assert!(
        usage(1)["cost"].is_null() && usage(1)["cost_known_part"].is_f64(),
        "{steps:#}"
    );
    let known = [&usage(0)["cost"], &usage(1)["cost_known_part"]].map(|cost| cost.as_f64().unwrap());
    assert!(run["usage"]["cost"].is_null(), "{run:#}");
    let sum = run["usage"]["cost_known_part"].as_f64().unwrap();
    assert!((sum - known.iter().sum::<f64>()).abs() < 1e-9, "{run:#}");
    app.finish().await;
}

/// The pointer of a problem, and fields of an agent that have it.
const UNUSABLE: &str = r#"
/parameters/tool_choice | {"parameters": {"tool_choice": {"tool": "other"}}}
/parameters/tool_choice | {"parameters": {"tool_choice": "always"}}
/parameters/tool_choice | {"parameters": {"tool_choice": {"tool": ["calculator"]}}}
/parameters/tool_choice | {"tools": [], "parameters": {"tool_choice": "required"}}
/parameters/tool_choice | {"driver": "react", "parameters": {"tool_choice": "required"}}
/provider_tools         | {"provider_tools": {"nobody": [{"type": "t"}]}}
/provider_tools         | {"provider_tools": {"mock/m": [{"type": "t"}]}}
/provider_tools         | {"provider_tools": {"mock": [{}]}}
/provider_tools         | {"provider_tools": {"mock": [{"name": "calculator"}]}}
/provider_tools/mock/0  | {"provider_tools": {"mock": ["search"]}}
/provider_tools         | {"provider_tools": [{"type": "t"}]}
/parameters/extra       | {"parameters": {"extra": {"background": true}}}
/parameters/extra       | {"parameters": {"extra": {"models": ["mock/dear"]}}}
"#;

async fn a_definition_that_no_model_can_follow_is_refused(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let many = json!({"provider_tools": {"mock": vec![json!({"type": "t"}); 33]}});
    let others = rows(UNUSABLE).map(|[pointer, changes]| (pointer, serde_json::from_str(changes).unwrap()));
    for (pointer, changes) in others.chain([("/provider_tools", many)]) {
        let definition = extended(json!({"model": "mock/m", "tools": ["calculator"]}), &changes);
        let answer = app.put("/v1/agents/wrong", &definition).await;
        assert_eq!(answer.status, 400, "{definition}");
        assert_eq!(
            answer.json()["errors"][0]["pointer"],
            pointer,
            "{definition}: {}",
            answer.text()
        );
    }
    app.finish().await;
}

async fn a_file_of_the_provider_reaches_its_model_and_stays_in_the_session(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("reader", json!({"model": "mock/m"})).await;
    let part = |provider: &str| {
        let source = json!({"kind": "provider_file", "provider": provider, "file_id": "file-1"});
        json!({"type": "document", "name": "a.pdf", "source": source})
    };
    let input = json!([{"type": "text", "text": "Read."}, part("mock"), part("other")]);
    let run = app.run_with(json!({"agent": "reader", "input": input})).await;
    let sent = mock.requests()[0]["messages"][0]["content"].clone();
    assert_eq!(sent[1], json!({"type": "file", "file": {"file_id": "file-1"}}));
    assert_contains!(sent[2]["text"].as_str().unwrap(), "stored at the provider other");
    let path = session_path(&run, "/messages");
    assert_eq!(
        app.get(&path).await["data"][0]["content"],
        input,
        "nothing of it is lost"
    );
    for (name, value) in [
        ("provider", ""),
        ("file_id", ""),
        ("file_id", "a b"),
        ("provider", "a\u{7}"),
    ] {
        let mut part = part("mock");
        part["source"][name] = json!(value);
        let answer = app.post("/v1/runs", &json!({"agent": "reader", "input": [part]})).await;
        answer.assert_problem_at("invalid_field", &format!("/input/0/source/{name}"));
    }
    app.finish().await;
}

async fn thinking_in_the_words_is_no_part_of_the_answer(database: TestDatabase) {
    let pieces = ["<th", "ink>\nHm", ".\n</think", ">\n\n", "Yes."].map(str::to_owned);
    let mock = MockModel::start(move |_| Reply::Text(pieces.to_vec())).await;
    for (settings, text) in [
        (&[][..], "Yes."),
        (
            &[("providers.mock.think_tags", "false")],
            "<think>\nHm.\n</think>\n\nYes.",
        ),
    ] {
        let app = TestApp::start(database.url(), &mock, settings).await;
        app.put_agent("thinker", json!({"model": "mock/m"})).await;
        let run = app.run_with(json!({"agent": "thinker", "input": "go"})).await;
        assert_eq!(run["output_text"], text);
        let content = &run["output"][0]["content"];
        let expected = if settings.is_empty() {
            json!([{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": text}])
        } else {
            json!([{"type": "text", "text": text}])
        };
        assert_eq!(content, &expected);
        app.finish().await;
    }
}

async fn a_provider_that_refuses_is_named_with_its_host(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::Status(401, json!({"error": {"message": "wrong key"}}).to_string())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("lost", json!({"model": "mock/m"})).await;
    let run = app.run_with(json!({"agent": "lost", "input": "go"})).await;
    assert_members!(run, {"status": "failed", "error/code": "model_auth"});
    let host = mock.base_url().replace("/v1", "");
    let expected = format!("wrong key (provider mock at {host}, status 401)");
    assert_eq!(run["error"]["message"], expected);
    app.finish().await;
}
