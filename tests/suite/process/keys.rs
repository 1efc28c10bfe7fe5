//! API keys from an operator's side: made, used and revoked while the service runs; their secrets
//! are stored nowhere.

use std::fs;
use std::path::Path;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;

use super::binary::Home;
use super::service::{Service, read};
use crate::end_to_end::on_every_store;
use crate::support::test_app::session_path;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(
    a_key_allows_what_its_scopes_name,
    a_revoked_key_stops_working,
    secrets_are_not_stored,
    limits_are_made_with_a_key_and_shown
);

/// Makes a key and returns its id and its secret.
async fn make_key(home: &Home, tenant: &str, scopes: &str) -> (String, String) {
    let arguments = ["keys", "create", "--tenant", tenant, "--scope", scopes];
    let ended = home.run(&arguments).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let secret = ended.stdout.trim().to_owned();
    assert!(!ended.stderr.contains(&secret), "the secret is shown once");
    let words = ended.stderr.split_whitespace();
    let key_id = words.skip_while(|word| *word != "key").nth(1).unwrap().to_owned();
    (key_id, secret)
}

/// Waits until the response to the request is 401.
async fn until_closed(request: impl Fn() -> RequestBuilder) {
    until("it stays open", async || {
        read(request(), None).await.0 == StatusCode::UNAUTHORIZED
    })
    .await;
}

async fn limits_are_made_with_a_key_and_shown(database: TestDatabase) {
    let home = Home::new(database.url());
    let create = ["keys", "create", "--tenant", "acme", "--label", "narrow"];
    let limits = [
        ["--max-steps", "3"],
        ["--max-tokens", "4"],
        ["--max-seconds", "5"],
        ["--max-cost", "0.5"],
        ["--max-cost-per-day", "2.5"],
        ["--max-cost-per-month", "20.5"],
        ["--agents", "support-*,demo"],
        ["--models", "openai/*,demo/*"],
        ["--providers", "openai,demo"],
    ];
    let ended = home.run(&[&create[..], limits.as_flattened()].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let listed = home.run(&["keys", "list"]).await.stdout;
    let (_, shown) = listed.split_once("narrow  ").unwrap();
    let shown: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    let expected = json!({
        "max_steps": 3,
        "max_tokens": 4,
        "max_seconds": 5,
        "max_cost": 0.5,
        "agents": ["support-*", "demo"],
        "models": ["openai/*", "demo/*"],
        "providers": ["openai", "demo"],
        "spend": {"day": 2.5, "month": 20.5},
    });
    assert_eq!(shown, expected, "{listed}");
    for bad in [
        ["--max-steps", "0"],
        ["--max-tokens", "0"],
        ["--max-seconds", "0"],
        ["--max-cost", "-1"],
        ["--max-cost-per-day", "much"],
        ["--agents", "a b"],
        ["--models", "a b"],
        ["--providers", "a b"],
    ] {
        let ended = home.run(&[&create[..], &bad].concat()).await;
        assert_eq!(ended.code, Some(2), "{bad:?}: {}", ended.stderr);
    }
    let ended = home.run(&[&create[..], &["--models", "openai"]].concat()).await;
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("write `openai/*`"), "{}", ended.stderr);
    // What the help shows as the default is what makes the same key.
    let help = home.run(&["keys", "create", "--help"]).await.stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, default) = help.split_once("[default: runs").unwrap();
    assert!(default.starts_with(":write,sessions:read]"), "{help}");
    home.succeed(&["keys", "create", "--tenant", "acme"]).await;
    let listed = home.run(&["keys", "list"]).await.stdout;
    assert_eq!(listed.matches("runs:write,sessions:read").count(), 2, "{listed}");
}

async fn a_key_allows_what_its_scopes_name(database: TestDatabase) {
    let home = Home::new(database.url());
    let service = Service::start(&home).await;
    let of_nobody = path_of(&service.run("demo", None, "What is 1 + 1?").await);
    // The first key closes a service that was open.
    let (_, writer) = make_key(&home, "acme", "runs:write,sessions:read").await;
    until_closed(|| service.request(Method::GET, "/v1/runs")).await;
    service.refused(Method::GET, "/v1/runs", None, "missing_api_key").await;

    let (_, reader) = make_key(&home, "acme", "sessions:read").await;
    let (_, stranger) = make_key(&home, "other", "runs:write,sessions:read").await;
    let with = |key: &str, method: Method, path: &str| service.request(method, path).bearer_auth(key);
    let run = json!({"agent": "demo", "input": "What is 2 + 2?"});
    let (status, result) = read(with(&writer, Method::POST, "/v1/runs"), Some(run.clone())).await;
    assert_eq!(status, StatusCode::OK, "{result:#}");
    let session = path_of(&result);
    let wrong = format!("{writer}x");
    for (key, path, wanted) in [
        (&writer, &session, StatusCode::OK),
        (&reader, &session, StatusCode::OK),
        (&stranger, &session, StatusCode::NOT_FOUND),
        (&writer, &of_nobody, StatusCode::NOT_FOUND),
        (&wrong, &session, StatusCode::UNAUTHORIZED),
    ] {
        let (status, body) = read(with(key, Method::GET, path), None).await;
        assert_eq!(status, wanted, "{path}: {body:#}");
    }
    let agent = json!({"model": "demo/demo"});
    for (key, method, path, body) in [
        (&reader, Method::POST, "/v1/runs", run),
        (&writer, Method::PUT, "/v1/agents/mine", agent),
    ] {
        let (status, problem) = read(with(key, method, path), Some(body)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {problem:#}");
    }
    service.stop().await;
}

async fn a_revoked_key_stops_working(database: TestDatabase) {
    let home = Home::new(database.url());
    let (first_id, first) = make_key(&home, "acme", "sessions:read").await;
    let (_, second) = make_key(&home, "acme", "sessions:read").await;
    let service = Service::start(&home).await;
    let with = |key: &str| service.request(Method::GET, "/v1/sessions").bearer_auth(key);
    for key in [&first, &second] {
        assert_eq!(read(with(key), None).await.0, StatusCode::OK);
    }
    home.succeed(&["keys", "revoke", &first_id]).await;
    until_closed(|| with(&first)).await;
    assert_eq!(read(with(&second), None).await.0, StatusCode::OK);
    let complaint = home.fail(&["keys", "revoke", &first_id]).await;
    assert!(complaint.contains("no active key"), "{complaint}");
    let listed = home.succeed(&["keys", "list"]).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let line = listed.lines().find(|line| line.contains(&first_id)).unwrap();
    assert!(line.contains("revoked"), "{listed}");
    // Where a key has leaked, it may be all that is at hand.
    let done = home.succeed(&["keys", "revoke", &second]).await;
    assert!(done.contains("revoked") && !done.contains(&second), "{done}");
    until_closed(|| with(&second)).await;
    let complaint = home.fail(&["keys", "revoke", &second]).await;
    assert_contains!(complaint, "no active key");
    assert_lacks!(complaint, &second);
    service.stop().await;
}

async fn secrets_are_not_stored(database: TestDatabase) {
    let home = Home::new(database.url()).variable("AGENT_RUNTIME__LOG__FILTER", "debug");
    let (_, secret) = make_key(&home, "acme", "runs:write,sessions:read").await;
    let service = Service::start(&home).await;
    let banner = service.banner();
    let curl = banner.lines().last().unwrap();
    assert!(curl.contains("$AGENT_RUNTIME_KEY"), "{curl}");
    let line = format!("AGENT_RUNTIME_KEY={secret}; {curl}");
    let ended = home.start_shell(&line).end().await;
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["status"], "completed", "{result:#}");

    let listed = home.succeed(&["keys", "list"]).await;
    let log = service.stop().await.stderr;
    assert!(log.contains("/v1/runs"), "{log}");
    assert!(secret.len() > 30, "{secret}");
    for shown in [&banner, &listed, &log] {
        assert!(!shown.contains(&secret), "{shown}");
    }
    assert_eq!(stored_copies(&database, &secret).await, 0);
}

fn path_of(result: &Value) -> String {
    session_path(result, "")
}

/// Counts the files, or the rows of keys, that hold the text.
async fn stored_copies(database: &TestDatabase, text: &str) -> i64 {
    if let Some(path) = database.url().strip_prefix("sqlite://") {
        let folder = Path::new(path).parent().unwrap();
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let holding = files.filter(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()));
        return i64::try_from(holding.count()).unwrap();
    }
    let sql = format!("select count(*) from api_keys where strpos(api_keys::text, '{text}') > 0");
    database.number(&sql).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_only_this_machine_is_served() {
    let home = Home::with_file();
    let beyond = ["--listen", "0.0.0.0:0"];
    let complaint = home.fail(&[&["serve"], &beyond[..]].concat()).await;
    for expected in ["no API key", "0.0.0.0", "keys create", "--insecure-no-auth"] {
        assert!(complaint.contains(expected), "{complaint}");
    }

    let insecure = Service::start_with(&home, &[&beyond[..], &["--insecure-no-auth"]].concat()).await;
    insecure.run("demo", None, "What is 1 + 1?").await;
    insecure.stop().await;

    let (key_id, secret) = make_key(&home, "acme", "runs:write").await;
    let guarded = Service::start_with(&home, &beyond).await;
    let (status, _) = guarded.call(Method::GET, "/v1/sessions", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let guarded = guarded.with_key(&secret);
    guarded.run("demo", None, "What is 1 + 1?").await;
    guarded.stop().await;

    home.succeed(&["keys", "revoke", &key_id]).await;
    let still_guarded = Service::start_with(&home, &beyond).await;
    let (status, _) = still_guarded.call(Method::GET, "/v1/sessions", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "the last key's end opens nothing");
    still_guarded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_arguments_for_keys_are_reported() {
    let home = Home::with_file();
    for (arguments, expected) in [
        (&["keys", "create"][..], "--tenant"),
        (&["keys", "create", "--tenant", "a b"], "a b"),
        (
            &["keys", "create", "--tenant", "acme", "--scope", "runs:wrote"],
            "runs:wrote",
        ),
        (&["keys", "revoke", "nonsense"], "nonsense"),
    ] {
        let complaint = home.fail(arguments).await;
        assert!(complaint.contains(expected), "{complaint}");
    }
}
