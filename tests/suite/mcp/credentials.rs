//! Credentials of a server: headers with secrets, and access tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agent::ports::ToolServers as _;
use serde_json::json;
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};
use tools::ToolSecrets;
use values::json::Value;
use values::session::ToolPins;
use values::tenant::TenantId;

use super::raw::{begin, response};
use super::server::{Era, McpServer};
use super::{McpApp, servers_with};
use crate::support::text::assert_contains;

const SECRET: &str = "s3cr3t-t0ken";

/// Settings with the secret `main` in a file.
fn secret_file(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("secret");
    std::fs::write(&path, SECRET).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_has_the_headers_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret_file(&folder);
    for era in super::ERAS {
        let server = McpServer::start(era);
        let more = "[headers]\nAuthorization = { secret = \"main\", prefix = \"Bearer \" }\nX-Team = \"a\"";
        let servers = [("box", &*server.url(), more)];
        let settings = [("tools.secrets.main.file", file.as_str())];
        let app = McpApp::alone_with(&servers, &settings).await;
        app.use_tool("box_echo", json!({"text": "hi"})).await;
        let expected = Some(format!("Bearer {SECRET}"));
        let sent = server.header("authorization");
        assert!(
            sent.len() >= 3 && sent.iter().all(|value| *value == expected),
            "{sent:?}"
        );
        assert!(
            server
                .header("x-team")
                .iter()
                .all(|value| value.as_deref() == Some("a"))
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_access_token_is_shared_and_renewed_when_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret_file(&folder);
    let given = Arc::new(AtomicUsize::new(0));
    let (giving, accepted) = (Arc::clone(&given), Arc::new(AtomicUsize::new(1)));
    let accepting = Arc::clone(&accepted);
    let server = RawServer::start(move |request| {
        if request.line() == "POST /token" {
            assert_eq!(request.body, "grant_type=client_credentials&scope=a+b");
            // The id and the secret, joined by a colon.
            assert_eq!(request.header("authorization"), Some("Basic bWU6czNjcjN0LXQwa2Vu"));
            let token = format!("token-{}", giving.fetch_add(1, Ordering::Relaxed) + 1);
            let body = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
            return RawReply::new(200, &[("content-type", "application/json")], body.to_string());
        }
        let expected = format!("Bearer token-{}", accepting.load(Ordering::Relaxed));
        if request.header("authorization") != Some(expected.as_str()) {
            return RawReply::new(401, &[("www-authenticate", "Bearer")], "");
        }
        let message: Value = serde_json::from_str(&request.body).unwrap();
        match message["method"].as_str() {
            Some("tools/call") => response(&message["id"], json!({"content": [{"type": "text", "text": "done"}]})),
            _ => begin(&message),
        }
    });
    let server = server.await;
    let more = format!(
        "[oauth]\ntoken_url = {:?}\nclient_id = \"me\"\nclient_secret = \"main\"\nscope = \"a b\"",
        server.url("/token")
    );
    let servers = [("box", &*server.url("/mcp"), &*more)];
    let settings = [("tools.secrets.main.file", file.as_str())];
    let app = McpApp::alone_with(&servers, &settings).await;
    assert_eq!(app.use_tool("box_t", json!({})).await, "done");
    assert_eq!(given.load(Ordering::Relaxed), 1);
    accepted.store(2, Ordering::Relaxed);
    assert_eq!(app.use_tool("box_t", json!({})).await, "done");
    assert_eq!(given.load(Ordering::Relaxed), 2);
    // A server that refuses the new token as well is not asked again and again.
    accepted.store(9, Ordering::Relaxed);
    let words = app.use_tool("box_unavailable", json!({})).await;
    assert!(words.contains("does not accept the configured credentials"), "{words}");
    assert_eq!(given.load(Ordering::Relaxed), 3);
    app.finish().await;
}

/// The lines of a definition that get a token at an address.
fn oauth(token_url: &str) -> String {
    format!("[oauth]\ntoken_url = {token_url:?}\nclient_id = \"me\"\nclient_secret = \"main\"")
}

/// The definition of a server that gets a token at an address.
fn definition(server: &McpServer, token_url: &str) -> String {
    let url = server.url();
    let oauth = oauth(token_url);
    format!("name = \"box\"\nurl = {url:?}\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\n{oauth}")
}

/// A token that expires at once.
fn short_token() -> RawReply {
    let token = json!({"access_token": "token", "token_type": "Bearer", "expires_in": 0});
    RawReply::new(200, &[("content-type", "application/json")], token.to_string())
}

/// Starts servers on one port of 127.0.0.1 and 127.0.0.2: one that gives tokens, and an internal
/// one.
async fn token_servers() -> (RawServer, RawServer) {
    loop {
        let server = RawServer::start(|_| short_token()).await;
        let address = format!("127.0.0.2:{}", server.port());
        // Another process may have the port.
        if std::net::TcpListener::bind(&address).is_ok() {
            return (server, RawServer::start_on(&address, |_| short_token()).await);
        }
    }
}

#[tokio::test]
async fn a_token_endpoint_at_an_internal_address_does_not_get_the_secret() {
    let dns = DnsServer::start(|name, _| match name {
        "internal.test" => vec![Record::address("127.0.0.2")],
        _ => vec![Record::address("127.0.0.1")],
    });
    let dns = dns.await;
    let (allowed, internal) = token_servers().await;
    let server = McpServer::start(Era::Modern);
    let secrets = ToolSecrets::from([("main".to_owned(), Some(SECRET.to_owned().into()))]);
    let servers = |token_url: &str| servers_with(&definition(&server, token_url), &secrets, dns.resolver());
    // An address is refused at the start, and a name when it is used.
    let fault = servers(&internal.url("/token")).unwrap_err().to_string();
    assert_contains!(fault, "oauth.token_url", "not public");
    let (tenant, names) = (TenantId::anonymous(), ["box".to_owned()]);
    for (host, is_allowed) in [("internal.test", false), ("allowed.test", true)] {
        let servers = servers(&format!("http://{host}:{}/token", allowed.port())).unwrap();
        let offered = servers.offered(&tenant, &names, &ToolPins::default()).await;
        let words = &offered.tools[0].tool.spec().description;
        assert_eq!(words.contains("its address is not public"), !is_allowed, "{words}");
        // Without a token, the server gets no request.
        let sent = server.header("authorization");
        assert_eq!(sent.is_empty(), !is_allowed);
        assert!(
            sent.iter().all(|value| value.as_deref() == Some("Bearer token")),
            "{sent:?}"
        );
        assert_eq!(allowed.requests().len(), sent.len());
        servers.close().await;
    }
    assert!(internal.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_of_a_token_endpoint_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret_file(&folder);
    let settings = [("tools.secrets.main.file", file.as_str())];
    let server = McpServer::start(Era::Modern);
    // Not even to an address that is allowed.
    for (status, to) in [(307, "127.0.0.1:0"), (308, "127.0.0.2:0"), (302, "127.0.0.1:0")] {
        let target = RawServer::start_on(to, |_| short_token()).await;
        let url = target.url("/token");
        let redirecting = RawServer::start(move |_| RawReply::redirect(status, &url)).await;
        let more = oauth(&redirecting.url("/token"));
        let app = McpApp::alone_with(&[("box", &*server.url(), &*more)], &settings).await;
        let words = app.use_tool("box_unavailable", json!({})).await;
        let expected = format!("the token endpoint responded with HTTP {status}");
        assert!(words.contains(&expected), "{words}");
        assert!(!redirecting.requests().is_empty() && target.requests().is_empty());
        assert_eq!(server.header("authorization"), []);
        app.finish().await;
    }
}

#[tokio::test]
async fn a_token_endpoint_that_moves_to_an_internal_address_does_not_get_the_secret() {
    let has_moved = Arc::new(AtomicBool::new(false));
    let moving = Arc::clone(&has_moved);
    let dns = DnsServer::start(move |_, _| {
        let has_moved = moving.load(Ordering::SeqCst);
        vec![Record::address(if has_moved { "127.0.0.2" } else { "127.0.0.1" })]
    });
    let dns = dns.await;
    let (allowed, internal) = token_servers().await;
    let server = McpServer::start(Era::Modern);
    let definition = definition(&server, &format!("http://moving.test:{}/token", allowed.port()));
    let secrets = ToolSecrets::from([("main".to_owned(), Some(SECRET.to_owned().into()))]);
    let servers = servers_with(&definition, &secrets, dns.resolver()).unwrap();
    let (tenant, names) = (TenantId::anonymous(), ["box".to_owned()]);
    let pins = ToolPins::default();
    let offered = servers.offered(&tenant, &names, &pins).await;
    assert!(offered.tools.len() > 1, "{:?}", offered.tools[0].tool.spec());
    let (asked, sent) = (allowed.requests().len(), server.header("authorization").len());
    assert!(asked >= 2 && sent >= 2, "{asked} {sent}");
    has_moved.store(true, Ordering::SeqCst);
    let offered = servers.offered(&tenant, &names, &pins).await;
    let words = &offered.tools[0].tool.spec().description;
    assert!(words.contains("its address is not public"), "{words}");
    assert!(internal.requests().is_empty());
    // Neither the former address nor the server is asked any more.
    let after = (allowed.requests().len(), server.header("authorization").len());
    assert_eq!(after, (asked, sent));
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenant_has_a_connection_of_its_own() {
    let server = McpServer::start(Era::Legacy);
    let app = McpApp::with(&server, "").await;
    for tenant in ["a", "b", "a"] {
        let (_, key) = app.make_key(tenant, &[store::keys::Scope::Admin]).await;
        let authorization = format!("Bearer {key}");
        let agent = json!({"model": "mock/m", "mcp": ["box"]});
        let request = app.request(reqwest::Method::PUT, "/v1/agents/user");
        let request = request.header("authorization", &authorization);
        let put = crate::support::answer::read(crate::support::answer::with_json(request, &agent)).await;
        assert!(put.status.is_success(), "{}", put.text());
        let run = json!({"agent": "user", "input": json!([["c1", "box_echo", {"text": tenant}]]).to_string()});
        let request = app
            .request(reqwest::Method::POST, "/v1/runs")
            .header("authorization", &authorization);
        let run = crate::support::answer::read(crate::support::answer::with_json(request, &run))
            .await
            .ok();
        assert_eq!(run["output_text"], format!("echo: {tenant}"), "{run:#}");
    }
    let sessions: std::collections::BTreeSet<_> = server.header("mcp-session-id").into_iter().flatten().collect();
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    app.finish().await;
}
