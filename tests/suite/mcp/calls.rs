//! Calls of tools: the tools that agents get, their results, and the ends of calls.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use test_support::wait::until;
use tokio::time::timeout;
use values::json::Value;

use super::server::{Era, McpServer, PNG, tool};
use super::{ERAS, McpApp};
use crate::support::test_app::{session_path, sse_data};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_calls_the_tools_of_its_servers_in_both_eras() {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        assert_eq!(app.use_tool("box_echo", json!({"text": "hi"})).await, "echo: hi");
        let offered = app.offered();
        let own = offered
            .iter()
            .filter(|name| name.starts_with("box_dots_and_slashes_"))
            .count();
        assert_eq!((offered.len(), own), (11, 1), "{offered:?}");
        let expected = ["box_ask", "box_echo", "box_fail", "box_show", "box_slow", "box_sum"];
        assert_eq!([&offered[..1], &offered[2..7]].concat(), expected, "{offered:?}");
        let extras = [
            "box_list_resources",
            "box_read_resource",
            "box_list_prompts",
            "box_get_prompt",
        ];
        assert_eq!(offered[7..], extras);
        let version = match era {
            Era::Modern => "2026-07-28",
            _ => "2025-11-25",
        };
        assert_eq!(server.log(), [format!("listed by {version}")]);
        // The schema of the server goes to the model, and its arguments are checked against it.
        let wrong = app.use_tool("box_echo", json!({"text": 7})).await;
        assert!(wrong.contains("do not fit the schema of box_echo"), "{wrong}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_calls_the_tools_of_servers_of_older_revisions() {
    let eras = [
        (Era::UpTo20250618, "2025-06-18"),
        (Era::UpTo20250326, "2025-03-26"),
        (Era::Oldest, "2024-11-05"),
    ];
    for (era, version) in eras {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        assert_eq!(app.use_tool("box_echo", json!({"text": "hi"})).await, "echo: hi");
        assert_eq!(app.use_tool("box_sum", json!({"a": 3})).await, r#"{"sum":3}"#);
        assert_eq!(
            app.use_tool("box_read_resource", json!({"uri": "file:///b.txt"})).await,
            "[The resource file:///b.txt:]\nthe contents"
        );
        // Each run lists the tools, in the one session.
        assert_eq!(server.log(), vec![format!("listed by {version}"); 3]);
        assert_eq!(server.openings(), [1, 1, 3], "{version}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_every_kind_reach_the_model() {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        assert_eq!(app.use_tool("box_fail", json!({})).await, "out of order");
        assert_eq!(app.use_tool("box_sum", json!({"a": 3})).await, r#"{"sum":3}"#);
        let lie = app.use_tool("box_sum", json!({"a": 3, "lie": true})).await;
        // The call was executed, so that its result is not lost.
        assert!(lie.starts_with(r#"{"sum":"many"}"#), "{lie}");
        assert!(lie.contains("does not fit the output schema of the tool"), "{lie}");
        let run = app.call_tool(None, "box_show", json!({})).await;
        let messages = app.get(&session_path(&run, "/messages")).await;
        let content = &messages["data"][2]["content"][0]["content"];
        // The type of an image is that of its bytes.
        let image = json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": PNG}});
        // Some servers break the lines of base64, or send a `data:` URL.
        for index in [1, 4, 5] {
            assert_eq!(content[index], image, "{content:#}");
        }
        let texts: Vec<_> = content
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        assert_eq!(
            texts,
            [
                "Here:",
                "[an image: image/png, 3 bytes, which can't be shown]",
                "[an image, which is not valid base64 and can't be shown]",
                "[an image: image/gif, 27 bytes, which can't be shown: it has a side of 8001 pixels, and some models \
                 take at most 8000]",
                "[The resource file:///a.txt:]\nthe text",
                "[The resource file:///b.txt (b, of unknown type)]",
            ]
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_in_a_file_of_the_session() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::alone_with(&[("box", &server.url(), "")], &[("runs.max_tool_output_bytes", "1000")]).await;
    let long = "word ".repeat(1_000);
    let run = app.call_tool(None, "box_echo", json!({"text": long})).await;
    let read = run["output_text"].as_str().unwrap();
    assert!(read.len() <= 1_000 && read.starts_with("echo: word word"), "{read}");
    let (_, file) = read.split_once("is in the file ").unwrap();
    let (file, _) = file.split_once(" of the workspace").unwrap();
    assert!(file.starts_with(".agent/output/box_echo-"), "{file}");
    let path = format!("/v1/sessions/{}/files/{file}", run["session_id"].as_str().unwrap());
    let stored = app.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(stored.text().await.unwrap(), format!("echo: {long}"));
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_and_prompts_have_tools() {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        let listed: Value = serde_json::from_str(&app.use_tool("box_list_resources", json!({})).await).unwrap();
        assert_eq!(listed["resources"][0]["uri"], "file:///b.txt", "{listed:#}");
        let read = app.use_tool("box_read_resource", json!({"uri": "file:///b.txt"})).await;
        assert_eq!(read, "[The resource file:///b.txt:]\nthe contents");
        let prompts = app.use_tool("box_list_prompts", json!({})).await;
        assert!(prompts.contains("Greets."), "{prompts}");
        let prompt = app
            .use_tool("box_get_prompt", json!({"name": "greet", "arguments": {"who": "Ada"}}))
            .await;
        assert_eq!(prompt, r#"Greet {"who":"Ada"}."#);
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_and_prefixes_choose_the_tools() {
    let server = McpServer::start(Era::Modern);
    let other = McpServer::start(Era::Legacy);
    let (url, other_url) = (server.url(), other.url());
    let servers = [
        (
            "b",
            url.as_str(),
            "prefix = \"\"\nallow = [\"e*\", \"f*\"]\ndeny = [\"fa*\"]",
        ),
        ("a", other_url.as_str(), "prefix = \"\"\nallow = [\"echo\", \"sum\"]"),
    ];
    let app = McpApp::alone(&servers).await;
    app.put_agent(
        "user",
        json!({"model": "mock/m", "mcp": ["b", "a"], "tools": ["calculator"]}),
    )
    .await;
    app.use_tool("echo", json!({})).await;
    // The order is that of the agent, and the first of two tools with one name counts.
    assert_eq!(app.offered(), ["calculator", "echo", "sum"]);
    // A session may choose among them, and no others.
    let chosen = json!({"agent": "user", "input": "x", "tools": ["sum"]});
    app.run_with(chosen).await;
    assert_eq!(app.offered(), ["sum"]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_about_approvals_apply_to_tools_of_servers() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::with(&server, "").await;
    let rules = json!([{"tools": ["box_e*"], "approval": "always"}]);
    app.put_agent("user", json!({"model": "mock/m", "mcp": ["box"], "approvals": rules}))
        .await;
    let run = app.call_tool(None, "box_echo", json!({"text": "hi"})).await;
    assert_eq!(run["status"], "waiting", "{run:#}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_shown_and_a_cancelled_run_cancels_the_call() {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        let calls = json!([["c1", "box_slow", {}]]).to_string();
        let body = json!({"agent": "user", "input": calls, "mode": "async"});
        let (_, run) = app.call(Method::POST, "/v1/runs", Some(body)).await;
        let run_id = run["run_id"].as_str().unwrap();
        let events = app.request(Method::GET, &format!("/v1/runs/{run_id}/events"));
        let mut events = events.send().await.unwrap();
        let mut read = String::new();
        while !read.contains("step 2") || !read.ends_with("\n\n") {
            let piece = timeout(Duration::from_secs(10), events.chunk()).await.unwrap();
            read.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
        }
        let shown = sse_data(&read)
            .into_iter()
            .filter(|event| event["type"] == "tool_call.output");
        let shown: String = shown
            .filter_map(|event| event["data"]["text"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(shown, "[1/2] step 1\n[2/2] step 2\n");
        app.call(Method::POST, &format!("/v1/runs/{run_id}/cancel"), None).await;
        until("the call goes on", async || server.count("slow was cancelled") == 1).await;
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_a_limit_of_time_and_is_cancelled() {
    for era in ERAS {
        let server = McpServer::start(era);
        let app = McpApp::with(&server, "timeout = \"300ms\"").await;
        let words = timeout(Duration::from_secs(10), app.use_tool("box_slow", json!({})))
            .await
            .unwrap();
        assert_eq!(
            words,
            "the MCP server \"box\" gave no result: it did not respond within 300ms"
        );
        until("the call goes on", async || server.count("slow was cancelled") == 1).await;
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_is_reconnected() {
    for era in ERAS {
        let mut server = McpServer::start(era);
        let app = McpApp::with(&server, "").await;
        assert_eq!(app.use_tool("box_echo", json!({"text": "1"})).await, "echo: 1");
        server.restart().await;
        assert_eq!(app.use_tool("box_echo", json!({"text": "2"})).await, "echo: 2");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tool_is_offered_to_a_new_session() {
    let server = McpServer::start(Era::Modern);
    let app = McpApp::with(&server, "").await;
    app.use_tool("box_echo", json!({})).await;
    server.put(tool("new", "Is new.", json!({})));
    app.use_tool("box_echo", json!({})).await;
    assert!(app.offered().contains(&"box_new".to_owned()), "{:?}", app.offered());
    app.finish().await;
}
