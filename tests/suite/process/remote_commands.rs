//! The commands that read, at a running service: they print what they print at its store. Their
//! errors when the service, or what is in its place, does not answer as it should.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::raw_server::{RawReply, RawServer};

use super::binary::{Ended, Home};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::text::assert_contains;

on_every_store!(a_service_shows_what_its_store_shows, a_key_shows_its_tenant_alone);

const MISSING: &str = "01890000-0000-7000-8000-000000000000";

/// Makes a key of the tenant `default` with these scopes.
pub(super) async fn make_key(home: &Home, tenant: &str, scopes: &str) -> String {
    let create = ["keys", "create", "--tenant", tenant, "--scope", scopes];
    home.succeed(&create).await.trim().to_owned()
}

/// Returns a machine whose commands call the service and know of no store.
pub(super) fn client(url: &str, key: &str) -> Home {
    let home = Home::new("sqlite://absent.db");
    home.variable("AGENT_RUNTIME_URL", url)
        .variable("AGENT_RUNTIME_KEY", key)
}

fn first_id(run: &Value, name: &str) -> String {
    run[name].as_str().unwrap().to_owned()
}

async fn a_service_shows_what_its_store_shows(database: TestDatabase) {
    let home = Home::new(database.url());
    home.write(
        "config/agents/writer.toml",
        "model = 'demo/demo'\ndescription = 'Writes.'",
    );
    let key = make_key(&home, "default", "admin,runs:write,sessions:read").await;
    let service = Service::start(&home).await.with_key(&key);
    service.put_agent("a-counter", json!({"model": "demo/demo"})).await;
    let first = service.run("demo", None, "What is 1 + 1?").await;
    let [root, run] = ["session_id", "run_id"].map(|name| first_id(&first, name));
    let tip = first_id(&service.run("a-counter", Some(&root), "And 2 + 2?").await, "session_id");
    let fork = first_id(&service.run("demo", Some(&root), "And 3 + 3?").await, "session_id");
    let threaded = json!({"input": "What is 5 * 5?", "thread": "ada:1"});
    service.post("/v1/runs", threaded).await;
    let file = json!({"changes": [{"path": "notes/größe 1.txt", "content": "drei\nvier"}]});
    let changed = service.post(&format!("/v1/sessions/{fork}/files"), file).await;
    let changed = first_id(&changed, "session_id");

    let url = format!("http://{}", service.address);
    let client = client(&format!("{url}/"), &key);
    for arguments in [
        &["runs", "list"][..],
        &["runs", "list", "--json", "--limit", "2"],
        &[
            "runs",
            "list",
            "--status",
            "completed",
            "--agent",
            "demo",
            "--model",
            "demo/demo",
        ],
        &["runs", "list", "--thread", "ada:1"],
        &["runs", "show", &run],
        &["sessions", "list"],
        &["sessions", "list", "--json", "--tips", "--agent", "a-counter"],
        &["sessions", "list", "--thread", "ada:1", "--limit", "1"],
        &["sessions", "show", &tip, "--json"],
        &["sessions", "tree"],
        &["sessions", "tree", &tip],
        &["sessions", "diff", &tip, &changed],
        &["sessions", "files", &changed],
        &["sessions", "files", &changed, "--recursive", "--json"],
        &["sessions", "files", &changed, "notes"],
        &["sessions", "files", &changed, "notes/größe 1.txt"],
        &["threads", "list"],
        &["threads", "list", "--json"],
        &["threads", "show", "ada:1"],
        &["agents", "list"],
        &["agents", "show", "a-counter"],
    ] {
        let stored = home.succeed(arguments).await;
        assert!(!stored.trim().is_empty(), "{arguments:?}");
        let served = client.run(arguments).await;
        assert_eq!(served.code, Some(0), "{arguments:?}: {}", served.stderr);
        assert_eq!(served.stdout, stored, "{arguments:?}");
        assert_eq!(served.stderr, format!("service {url}\n"), "{arguments:?}");
        // Flags do the same.
        let flags = ["--url", &url, "--key", &key];
        assert_eq!(
            home.succeed(&[arguments, &flags].concat()).await,
            stored,
            "{arguments:?}"
        );
    }
    // No command has opened a store of its own.
    assert!(!client.path().join("absent.db").exists());
    problems_are_reported(&client, &run, &tip).await;
    service.stop().await;
}

async fn problems_are_reported(client: &Home, run: &str, session: &str) {
    for (arguments, problem) in [
        (&["runs", "show", MISSING][..], "(run_not_found)"),
        (&["sessions", "show", run], "(session_not_found)"),
        (&["sessions", "tree", MISSING], "(session_not_found)"),
        (&["sessions", "files", session, "absent/file"], "(file_not_found)"),
        (&["threads", "show", "eve"], "(thread_not_found)"),
        (&["agents", "show", "writr"], "did you mean"),
        (&["agents", "show", "../runs?x"], "error: "),
    ] {
        let ended = client.run(arguments).await;
        assert_eq!(ended.code, Some(1), "{arguments:?}: {}", ended.stderr);
        assert_contains!(ended.stderr, problem; "{arguments:?}");
        assert!(!ended.stderr.contains("{\""), "{}", ended.stderr);
    }
}

async fn a_key_shows_its_tenant_alone(database: TestDatabase) {
    let home = Home::new(database.url());
    let acme = make_key(&home, "acme", "runs:write,sessions:read").await;
    let other = make_key(&home, "other", "runs:write").await;
    let service = Service::start(&home).await.with_key(&acme);
    service.run("demo", None, "What is 1 + 1?").await;
    let url = format!("http://{}", service.address);
    let acme = client(&url, &acme);
    let stored = home.succeed(&["runs", "list", "--tenant", "acme"]).await;
    assert_eq!(acme.succeed(&["runs", "list"]).await, stored);
    assert_eq!(stored.lines().count(), 2, "{stored}");
    // Of agents in files, only an administrator sees more than the name and the description.
    assert_contains!(acme.succeed(&["agents", "list"]).await, "demo   file");
    let complaint = client(&url, &other).fail(&["runs", "list"]).await;
    assert_contains!(complaint, "(missing_scope)");
    let complaint = client(&url, "ark_wrong").fail(&["runs", "list"]).await;
    assert_contains!(complaint, "(invalid_api_key)", "AGENT_RUNTIME_KEY");
    // A flag with a store wins over the variable.
    let stored = acme.fail(&["runs", "list", "--store-url", "sqlite://absent.db"]).await;
    assert_contains!(stored, "there is no file");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_that_contradict_each_other_are_refused() {
    let url = "http://127.0.0.1:1";
    for (home, arguments, part) in [
        (
            Home::with_file(),
            &["runs", "list", "--url", url, "--tenant", "a"][..],
            "cannot be used with",
        ),
        (
            Home::with_file(),
            &["runs", "list", "--url", url, "--store-url", "sqlite://x.db"],
            "cannot be used with",
        ),
        (
            Home::with_file(),
            &["run", "hi", "--url", url, "--set", "runs.x=1"],
            "cannot be used with",
        ),
        (Home::with_file(), &["run", "hi", "--key", "ark_1"], "--url"),
        (
            Home::with_file(),
            &["sessions", "export", MISSING, "-o", "-", "--url", url],
            "can't move whole sessions",
        ),
        (
            client(url, "ark_1"),
            &["sessions", "import", "-"],
            "only a store has this command",
        ),
        (
            client(url, "ark_1"),
            &["runs", "list", "--tenant", "a"],
            "leave out --tenant",
        ),
        (Home::with_file(), &["openapi", "--set", "a=b"], "unexpected argument"),
        (
            Home::with_file(),
            &["--listen", "127.0.0.1:0", "openapi"],
            "cannot be used with",
        ),
    ] {
        let ended = home.run(arguments).await;
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_contains!(ended.stderr, part; "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_service_is_reported() {
    let json = [("content-type", "application/json")];
    let html = [("content-type", "text/html; charset=utf-8")];
    let endless = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[\"");
    let cut = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{");
    let problem = [("content-type", "application/problem+json")];
    let evil = r#"{"title": "Title", "status": 500, "detail": "\u001b[2J\u202e", "code": "c"}"#;
    for (reply, part) in [
        (
            RawReply::new(200, &html, "<html>"),
            "is it the address of an agent-runtime?",
        ),
        (RawReply::new(404, &html, "<html>"), "the status 404 and no JSON"),
        (RawReply::new(200, &json, "{\"a\": "), "can't be read: EOF"),
        (RawReply::new(200, &json, "[]"), "can't be read"),
        (
            RawReply::redirect(307, "https://elsewhere.example/"),
            "redirects to https://elsewhere.example/",
        ),
        (RawReply::redirect(302, ""), "redirects"),
        (RawReply::new(500, &problem, "{}"), "can't be read: missing field"),
        (RawReply::new(500, &problem, evil), r"Title: \u{1b}[2J\u{202e} (c)"),
        (cut, "the connection to it broke"),
        (RawReply::bytes("SSH-2.0-OpenSSH_9.2\r\n"), "the connection to it broke"),
        (
            endless.then_repeat(vec![b'x'; 1 << 20]),
            "has more than 268435456 bytes",
        ),
    ] {
        let server = RawServer::start(move |_| reply.clone()).await;
        let ended = client(&server.url(""), "ark_1").run(&["runs", "list"]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert_contains!(ended.stderr, part);
        assert_eq!(ended.stdout, "");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (url, part) in [
        (&*format!("http://{closed}"), "it can't be reached"),
        (&format!("https://{closed}"), "it can't be reached"),
        ("http://name.invalid", "it can't be reached"),
        ("127.0.0.1:8080", "is no address of a service"),
        ("ftp://127.0.0.1", "its scheme is neither https nor http"),
        ("http://user@127.0.0.1", "it holds credentials"),
        ("http://127.0.0.1/?key=1", "a query or a fragment"),
    ] {
        let ended = client(url, "ark_1").run(&["threads", "list"]).await;
        assert_eq!(ended.code, Some(1), "{url}: {}", ended.stderr);
        assert_contains!(ended.stderr, part; "{url}");
    }
    let complaint = client(&format!("http://{closed}"), "ark\u{7f}1")
        .fail(&["threads", "list"])
        .await;
    assert_contains!(complaint, "the key has characters that no key has");
    assert!(!complaint.contains("ark"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_are_printed_for_each_shell() {
    let home = Home::with_file();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.succeed(&["completions", shell]).await;
        assert_contains!(script, "agent-runtime", "healthcheck", "deny-open"; "{shell}");
    }
    let unread: Ended = home
        .start_unread(&["completions", "bash"])
        .end_within(Duration::from_mins(1))
        .await;
    assert_eq!(unread.code, Some(0), "{}", unread.stderr);
}
