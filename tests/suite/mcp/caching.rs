//! The cache of a server's list of tools, and of the revisions that the server supports.

use std::sync::Arc;
use std::time::Duration;

use agent::ports::ToolServers as _;
use net::outgoing::SystemResolver;
use reqwest::Method;
use serde_json::json;
use store::keys::Scope;
use test_support::wait::until;
use tokio::time;
use tools::ToolSecrets;
use values::json::Value;
use values::session::ToolPins;
use values::tenant::TenantId;

use super::server::{Era, McpServer, tool};
use super::{ERAS, McpApp, servers_with};
use crate::support::answer::{read, with_json};
use crate::tools::setup::call;

const HOUR: Option<u64> = Some(3_600_000);
/// Less than the time after which an unused connection closes, with what was listed on it.
const STEP: Duration = Duration::from_mins(4);

async fn echo(app: &McpApp) {
    assert_eq!(app.use_tool("box_echo", json!({"text": "hi"})).await, "echo: hi");
}

fn offers(app: &McpApp, tool: &str) -> bool {
    app.offered().iter().any(|name| name == tool)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_used_again_by_runs_and_sessions_until_it_expires() {
    for era in ERAS {
        // An older server need not say how long its list is valid. It is used for a minute then.
        let lifetimes = [Some(HOUR), (era == Era::Legacy).then_some(None)];
        for ttl_ms in lifetimes.into_iter().flatten() {
            let server = McpServer::start(era);
            server.set_ttl(ttl_ms);
            let app = McpApp::with(&server, "").await;
            let first = app.call_tool(None, "box_echo", json!({"text": "1"})).await;
            assert_eq!(first["output_text"], "echo: 1", "{first:#}");
            server.put(tool("late", "Is new.", json!({})));
            let second = app.call_tool(Some(&first), "box_echo", json!({"text": "2"})).await;
            assert_eq!(second["output_text"], "echo: 2", "{second:#}");
            echo(&app).await;
            assert!(!offers(&app, "box_late"), "{:?}", app.offered());
            let (probes, calls) = (server.requested("server/discover"), server.requested("tools/call"));
            assert_eq!((probes, server.requested("tools/list"), calls), (1, 1, 3), "{era:?}");
            app.finish().await;
        }
        // Once the list has expired, a run lists the tools again, on the same connection.
        let server = McpServer::start(era);
        server.set_ttl(Some(1));
        let app = McpApp::with(&server, "").await;
        echo(&app).await;
        server.put(tool("late", "Is new.", json!({})));
        server.set_ttl(HOUR);
        until("the list is used for longer than it is valid", async || {
            echo(&app).await;
            offers(&app, "box_late")
        })
        .await;
        echo(&app).await;
        let begun = usize::from(era == Era::Legacy);
        assert_eq!(server.openings(), [1, begun, 2], "{era:?}");
        app.finish().await;
    }
}

/// Moves the clock of this runtime. The server has a runtime of its own.
async fn advance(by: Duration) {
    time::pause();
    time::advance(by).await;
    time::resume();
}

#[tokio::test]
async fn no_list_is_used_for_more_than_an_hour() {
    let day = 24 * 3_600_000;
    // The library reads integers up to this one.
    let longest = u64::try_from(i64::MAX).unwrap();
    for (era, ttl_ms) in ERAS.into_iter().flat_map(|era| [(era, day), (era, longest)]) {
        let server = McpServer::start(era);
        server.set_ttl(Some(ttl_ms));
        let definition = format!(
            "name = \"box\"\nurl = {:?}\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\n\
             connect_timeout = \"2m\"",
            server.url()
        );
        let servers = servers_with(&definition, &ToolSecrets::default(), Arc::new(SystemResolver)).unwrap();
        let (tenant, names) = (TenantId::anonymous(), ["box".to_owned()]);
        // Uses the connection, and returns whether the new tool is offered.
        let offers_late = async || {
            let offered = servers.offered(&tenant, &names, &ToolPins::default()).await;
            let find = |name| offered.tools.iter().find(|offer| offer.tool.spec().name == name);
            let echo = &find("box_echo").unwrap().tool;
            assert_eq!(call(echo, &json!({"text": "hi"})).await, Ok("echo: hi".to_owned()));
            find("box_late").is_some()
        };
        assert!(!offers_late().await);
        server.put(tool("late", "Is new.", json!({})));
        for minutes in (4..=56).step_by(4) {
            advance(STEP).await;
            assert!(!offers_late().await, "{era:?} lists again after {minutes} minutes");
        }
        assert_eq!(server.requested("tools/list"), 1, "{era:?}");
        advance(STEP).await;
        assert!(offers_late().await, "{era:?} uses a list of {ttl_ms} ms after an hour");
        assert_eq!(server.requested("tools/list"), 2, "{era:?}");
        servers.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_notifies_of_a_change_is_listed_again() {
    let server = McpServer::start(Era::Legacy);
    server.set_ttl(HOUR);
    let app = McpApp::with(&server, "").await;
    echo(&app).await;
    // The notification comes over a stream that the client opens after it has begun the session.
    until("the client does not listen", async || server.requested("GET") == 1).await;
    server.put(tool("late", "Is new.", json!({})));
    echo(&app).await;
    assert!(!offers(&app, "box_late"), "{:?}", app.offered());
    assert_eq!(server.openings(), [1, 1, 1]);
    server.notify_of_change().await;
    until("the changed list is not read", async || {
        echo(&app).await;
        offers(&app, "box_late")
    })
    .await;
    // One notification is about one change.
    echo(&app).await;
    assert_eq!(server.openings(), [1, 1, 2]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenant_lists_the_tools_for_itself() {
    for era in ERAS {
        let server = McpServer::start(era);
        server.set_ttl(HOUR);
        let app = McpApp::with(&server, "").await;
        let mut listed = Vec::new();
        for tenant in ["a", "a", "b", "b", "a"] {
            let (_, key) = app.make_key(tenant, &[Scope::Admin]).await;
            let authorization = format!("Bearer {key}");
            let send = async |method: Method, path: &str, body: Value| {
                let request = app.request(method, path).header("authorization", &authorization);
                read(with_json(request, &body)).await
            };
            let agent = json!({"model": "mock/m", "mcp": ["box"]});
            let put = send(Method::PUT, "/v1/agents/user", agent).await;
            assert!(put.status.is_success(), "{}", put.text());
            let calls = json!([["c1", "box_echo", {"text": tenant}]]).to_string();
            let run = send(Method::POST, "/v1/runs", json!({"agent": "user", "input": calls})).await;
            let run = run.ok();
            assert_eq!(run["output_text"], format!("echo: {tenant}"), "{run:#}");
            listed.push(server.requested("tools/list"));
        }
        assert_eq!(listed, [1, 1, 2, 2, 2], "{era:?}");
        // The revision is that of the server: it is not looked for again for each tenant.
        let expected = if era == Era::Legacy { [1, 2, 2] } else { [2, 0, 2] };
        assert_eq!(server.openings(), expected, "{era:?}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_connection_begins_with_the_revision_that_the_server_spoke_last() {
    // The modern server has no session to lose, and its list is still valid.
    let cases = [
        (Era::Modern, [[1, 0, 1], [1, 0, 1], [1, 0, 1]]),
        (Era::Legacy, [[1, 1, 1], [1, 2, 1], [1, 3, 1]]),
    ];
    for (era, expected) in cases {
        let mut server = McpServer::start(era);
        server.set_ttl(HOUR);
        let app = McpApp::with(&server, "").await;
        let mut openings = Vec::new();
        for _ in expected {
            echo(&app).await;
            openings.push(server.openings());
            server.restart().await;
        }
        assert_eq!(openings, expected, "{era:?}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_changes_its_revisions_is_found() {
    // The openings at the first run after the restart: a server that still begins sessions is used
    // as before. Another one refuses the list and the beginning that it knew, and gets the other.
    let cases = [
        (Era::Legacy, Era::Modern, [1, 2, 3]),
        (Era::Legacy, Era::ModernOnly, [2, 3, 3]),
        (Era::ModernOnly, Era::Legacy, [2, 1, 3]),
        (Era::Modern, Era::Oldest, [2, 1, 3]),
    ];
    for (before, after, [probes, sessions, lists]) in cases {
        let mut server = McpServer::start(before);
        let app = McpApp::with(&server, "").await;
        echo(&app).await;
        server.restart_as(after).await;
        echo(&app).await;
        assert_eq!(server.openings(), [probes, sessions, lists], "{before:?} to {after:?}");
        // From then on, the server is asked for its list alone.
        echo(&app).await;
        assert_eq!(
            server.openings(),
            [probes, sessions, lists + 1],
            "{before:?} to {after:?}"
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_changes_its_revisions_is_found_after_a_call() {
    for (before, after) in [(Era::Legacy, Era::ModernOnly), (Era::ModernOnly, Era::Legacy)] {
        let mut server = McpServer::start(before);
        server.set_ttl(HOUR);
        let app = McpApp::with(&server, "").await;
        echo(&app).await;
        server.restart_as(after).await;
        // A call may have effects, so it is not repeated by itself.
        let failed = app.use_tool("box_echo", json!({"text": "hi"})).await;
        assert!(
            failed.starts_with("the MCP server \"box\" gave no result: "),
            "{failed}"
        );
        echo(&app).await;
        app.finish().await;
    }
}
