//! Servers and token endpoints that do not respond. What waits for them ends at its time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::ports::ToolServers as _;
use net::outgoing::SystemResolver;
use serde_json::json;
use test_support::raw_server::{RawReply, RawServer};
use test_support::wait::until;
use tokio::time;
use tools::ToolSecrets;
use values::json::Value;
use values::session::ToolPins;
use values::tenant::TenantId;

use super::raw::{RawMcp, begin, response, sse};
use super::servers_with;
use crate::support::text::assert_contains;
use crate::tools::setup::call;

/// Waits for `work`. Once `hangs` is true, all time limits of this runtime pass.
async fn expire<T>(hangs: impl Fn() -> bool, work: impl Future<Output = T>) -> T {
    let expiring = async {
        until("nothing hangs", async || hangs()).await;
        time::pause();
        std::future::pending::<()>().await;
    };
    let done = tokio::select! {
        done = work => done,
        () = expiring => unreachable!("nothing ends it"),
    };
    time::resume();
    done
}

/// The definition of a server whose limits do not pass by themselves.
fn definition(url: &str, more: &str) -> String {
    format!(
        "name = \"box\"\nurl = {url:?}\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\n\
         timeout = \"10m\"\nconnect_timeout = \"2m\"\n{more}"
    )
}

/// Begins a session of an older revision, and does not respond to its second message.
fn begin_session(request: &Value) -> RawReply {
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "box", "version": "1"},
            });
            let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            RawReply::new(200, &[("content-type", "application/json")], message.to_string())
        }
        "notifications/initialized" => RawReply::bytes("").then_hang(),
        _ => RawReply::new(404, &[], ""),
    }
}

#[tokio::test]
async fn a_connection_that_does_not_open_in_time_is_closed() {
    type React = fn(&Value) -> RawReply;
    let cases: [(&str, React); 3] = [
        ("does not respond", |_| RawReply::bytes("").then_hang()),
        ("does not end its first response", |_| sse("").then_hang()),
        ("does not accept the session", begin_session),
    ];
    for (name, react) in cases {
        let server = RawMcp::start_all(react).await;
        let definition = definition(&server.url(), "");
        let servers = servers_with(&definition, &ToolSecrets::default(), Arc::new(SystemResolver)).unwrap();
        let (tenant, names, pins) = (TenantId::anonymous(), ["box".to_owned()], ToolPins::default());
        let offered = expire(|| server.hangs().0 > 0, servers.offered(&tenant, &names, &pins)).await;
        assert_eq!(offered.tools.len(), 1, "a server that {name} is used");
        let missing = format!("the connection to a server that {name} stays open");
        until(&missing, async || {
            let (begun, closed) = server.hangs();
            begun == closed
        })
        .await;
        servers.close().await;
    }
}

/// Starts a server with a tool `t`, and a token endpoint that hangs while the flag is set. Its
/// tokens expire at once. Returns the definition.
async fn with_token_endpoint(hangs: &Arc<AtomicBool>) -> (RawMcp, RawServer, String) {
    let server = RawMcp::start_all(|request| match request["method"].as_str() {
        Some("tools/call") => response(&request["id"], json!({"content": [{"type": "text", "text": "done"}]})),
        _ => begin(request),
    });
    let hangs = Arc::clone(hangs);
    let tokens = RawServer::start(move |_| {
        if hangs.load(Ordering::SeqCst) {
            return RawReply::bytes("").then_hang();
        }
        let token = json!({"access_token": "token", "token_type": "Bearer", "expires_in": 0});
        RawReply::new(200, &[("content-type", "application/json")], token.to_string())
    });
    let (server, tokens) = tokio::join!(server, tokens);
    let oauth = format!(
        "[oauth]\ntoken_url = {:?}\nclient_id = \"me\"\nclient_secret = \"main\"",
        tokens.url("/token")
    );
    let definition = definition(&server.url(), &oauth);
    (server, tokens, definition)
}

fn secrets() -> ToolSecrets {
    ToolSecrets::from([("main".to_owned(), Some("s3cr3t-t0ken".to_owned().into()))])
}

#[tokio::test]
async fn a_token_endpoint_that_hangs_at_the_start_does_not_block_other_tenants() {
    let hangs = Arc::new(AtomicBool::new(true));
    let (_server, tokens, definition) = with_token_endpoint(&hangs).await;
    let servers = servers_with(&definition, &secrets(), Arc::new(SystemResolver)).unwrap();
    let (names, pins) = (["box".to_owned()], ToolPins::default());
    let tenants = ["a", "b"].map(|name| name.parse::<TenantId>().unwrap());
    let offered = expire(|| tokens.hangs().0 > 0, servers.offered(&tenants[0], &names, &pins)).await;
    let words = &offered.tools[0].tool.spec().description;
    assert!(words.contains("it did not respond within"), "{words}");
    hangs.store(false, Ordering::SeqCst);
    let offered = servers.offered(&tenants[1], &names, &pins).await;
    let spec = offered.tools[0].tool.spec();
    assert_eq!(spec.name, "box_t", "{}", spec.description);
    until("a request for a token stays open", async || {
        let (begun, closed) = tokens.hangs();
        begun == closed
    })
    .await;
    servers.close().await;
}

#[tokio::test]
async fn a_token_endpoint_that_hangs_in_a_call_is_an_error_of_the_call() {
    let hangs = Arc::new(AtomicBool::new(false));
    let (_server, tokens, definition) = with_token_endpoint(&hangs).await;
    let servers = servers_with(&definition, &secrets(), Arc::new(SystemResolver)).unwrap();
    let (tenant, names) = (TenantId::anonymous(), ["box".to_owned()]);
    let offered = servers.offered(&tenant, &names, &ToolPins::default()).await;
    let tool = &offered.tools[0].tool;
    hangs.store(true, Ordering::SeqCst);
    // The call itself may take ten minutes.
    let error = expire(|| tokens.hangs().0 > 0, call(tool, &json!({})))
        .await
        .unwrap_err();
    assert_contains!(error, "the token endpoint did not respond within 120s");
    hangs.store(false, Ordering::SeqCst);
    assert_eq!(call(tool, &json!({})).await, Ok("done".to_owned()));
    servers.close().await;
}
