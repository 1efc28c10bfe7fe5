//! The tools of servers beside the other features of agents: subagents, deferred tools, durability.

use serde_json::json;
use values::json::Value;

use super::McpApp;
use super::server::{Era, McpServer};
use crate::support::text::assert_contains;

/// A task for a subagent, whose model makes these calls.
fn task(calls: &Value) -> Value {
    json!({"task": calls.to_string()})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subagent_has_the_tools_of_the_servers_that_both_agents_list() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::with(&server, "").await;
    let lists = json!({"model": "mock/m", "mcp": ["box"]});
    app.put_agent("helper", lists).await;
    app.put_agent("outsider", json!({"model": "mock/m"})).await;
    let subagents = json!([{"agent": "helper"}, {"agent": "outsider"}]);
    let lead = json!({"model": "mock/m", "mcp": ["box"], "subagents": subagents});
    app.put_agent("user", lead).await;
    let echo = task(&json!([["c1", "box_echo", {"text": "hi"}]]));
    assert_eq!(app.use_tool("helper", echo.clone()).await, "echo: hi");
    let words = app.use_tool("outsider", echo.clone()).await;
    assert!(words.contains("no tool is named \"box_echo\""), "{words}");
    // An agent above that does not list the server gives its subagent nothing of it.
    app.put_agent("user", json!({"model": "mock/m", "subagents": subagents}))
        .await;
    let words = app.use_tool("helper", echo).await;
    assert!(words.contains("no tool is named \"box_echo\""), "{words}");
    assert_eq!(server.count("listed by 2026-07-28"), 2);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subagent_can_not_wait_for_input() {
    for era in super::ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        app.put_agent("helper", json!({"model": "mock/m", "mcp": ["box"]}))
            .await;
        let lead = json!({"model": "mock/m", "mcp": ["box"], "subagents": [{"agent": "helper"}]});
        app.put_agent("user", lead).await;
        let ask = task(&json!([["c1", "box_ask", {}]]));
        let words = app.use_tool("helper", ask).await;
        assert_eq!(
            words,
            "box_ask asks for input of the caller, and an agent that works for another agent can't wait for it"
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_servers_can_be_deferred() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::with(&server, "").await;
    let agent = json!({"model": "mock/m", "mcp": ["box"], "tools": ["search_tools"], "deferred_tools": ["box_*"]});
    app.put_agent("user", agent).await;
    let words = app.use_tool("box_echo", json!({"text": "hi"})).await;
    assert!(words.contains("you have not read its parameters"), "{words}");
    assert_eq!(app.offered(), ["search_tools"]);
    app.use_tool("search_tools", json!({"query": "box_echo"})).await;
    assert!(app.offered().contains(&"box_echo".to_owned()), "{:?}", app.offered());
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_names_servers_that_exist() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::with(&server, "").await;
    let many: Vec<_> = (0..17).map(|n| format!("s{n}")).collect();
    for (servers, expected) in [
        (json!(["bix"]), "no MCP server is named \"bix\"; known are box"),
        (json!(["box", "box"]), "\"box\" is named twice"),
        (json!(many), "the most are 16"),
    ] {
        let definition = json!({"model": "mock/m", "mcp": servers});
        let refused = app.put("/v1/agents/user", &definition).await;
        assert!(refused.status.is_client_error(), "{}", refused.text());
        assert_contains!(refused.text(), &expected.replace('"', "\\\""));
    }
    app.finish().await;
    let app = McpApp::alone(&[]).await;
    let refused = app
        .put("/v1/agents/user", &json!({"model": "mock/m", "mcp": ["bix"]}))
        .await;
    let problem = refused.text();
    assert_contains!(problem, "no MCP server is named \\\"bix\\\"; none is configured");
    app.finish().await;
}
