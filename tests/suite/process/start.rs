//! Starting: the banner, the health check, and what the service prints if it can't start.

use std::net::TcpListener;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::ports::RefusingAddress;
use test_support::wait::{until, until_found};

use super::binary::{Home, Process};
use super::service::{Service, read};
use crate::end_to_end::on_every_store;
use crate::support::test_app::plain_client;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(the_banner_is_true, a_store_of_a_newer_version_is_refused);

async fn the_banner_is_true(database: TestDatabase) {
    let home = Home::new(database.url());
    let service = Service::start(&home).await;
    let banner = service.banner();
    assert!(!service.address.ends_with(":0"), "{banner}");
    assert!(banner.contains("agents        demo\n"), "{banner}");
    if let Some(password) = password(database.url()) {
        assert_lacks!(banner, password);
        assert_contains!(banner, ":[redacted]@");
    }
    assert_eq!(service.get("/readyz").await, json!({"status": "ready"}));

    let curls: Vec<&str> = banner.lines().filter(|line| line.trim().starts_with("curl ")).collect();
    assert_eq!(curls.len(), 1, "{banner}");
    let ended = home.start_shell(curls[0]).end().await;
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["status"], "completed");
    assert!(result["output_text"].as_str().unwrap().contains("391"), "{result:#}");

    let ended = service.stop().await;
    if let Some(password) = password(database.url()) {
        assert!(!ended.stderr.contains(password));
    }
}

async fn a_store_of_a_newer_version_is_refused(database: TestDatabase) {
    let home = Home::new(database.url());
    home.succeed(&["migrate"]).await;
    database
        .execute("insert into schema_migrations (version, description) values (99, 'future')")
        .await
        .unwrap();
    for command in [&["serve"][..], &["migrate"], &["sessions", "tree"]] {
        let complaint = home.fail(command).await;
        assert_contains!(complaint, "version 99", "start a newer agent-runtime");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_serves_probes_only() {
    let home = Home::with_file();
    let worker = Service::start_with(&home, &["--role", "worker"]).await;
    let banner = worker.banner();
    assert!(banner.contains("(probes only: /healthz and /readyz)\n"), "{banner}");
    assert!(banner.contains("role          worker"), "{banner}");
    assert!(!banner.contains("/docs") && !banner.contains("curl"), "{banner}");
    for path in ["/healthz", "/readyz"] {
        worker.get(path).await;
    }
    for (method, path) in [
        (Method::GET, "/v1/agents"),
        (Method::POST, "/v1/runs"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/nothing"),
    ] {
        let problem = worker.refused(method, path, None, "route_not_found").await;
        let detail = problem["detail"].as_str().unwrap();
        assert_contains!(detail, "role `worker`", "`api` or `all`"; "{path}");
    }
    worker
        .refused(Method::POST, "/healthz", None, "method_not_allowed")
        .await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_is_the_default_command() {
    let home = Home::with_file();
    let mut process = home.start(&[]);
    banner_of(&mut process).await;
    process.signal("INT");
    assert_eq!(process.end().await.code, Some(0));
}

/// Waits until the service has printed its banner, and returns the banner.
async fn banner_of(process: &mut Process) -> String {
    until("there is no banner", async || {
        assert!(process.status().is_none(), "{}", process.stderr());
        process.stdout().contains("curl")
    })
    .await;
    process.stdout()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_can_not_be_written_stops_nothing_else() {
    let home = Home::with_file();
    let mut process = home.start_shell("exec agent-runtime --listen 127.0.0.1:0 2>/dev/full");
    let banner = banner_of(&mut process).await;
    let (_, url) = banner.split_once("listening on  ").unwrap();
    let url = format!("{}/v1/runs", url.split_whitespace().next().unwrap());
    let request = plain_client().post(url);
    let (status, run) = read(request, Some(json!({"agent": "demo", "input": "What is 17 * 23?"}))).await;
    assert_eq!((status, &run["status"]), (StatusCode::OK, &json!("completed")));
    process.signal("TERM");
    assert_eq!(process.end().await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_health_check_sets_the_exit_code() {
    let home = Home::with_file();
    let service = Service::start(&home).await;
    for path in ["healthz", "readyz"] {
        let url = format!("http://{}/{path}", service.address);
        home.succeed(&["healthcheck", "--url", &url]).await;
    }
    home.succeed(&["healthcheck", "--set", &listen(&service.address)]).await;
    let missing = format!("http://{}/nothing", service.address);
    let complaint = home.fail(&["healthcheck", "--url", &missing]).await;
    assert!(complaint.contains("404") && complaint.contains(&missing), "{complaint}");

    service.stop().await;
    let refusing = RefusingAddress::new();
    let url = format!("http://{}/healthz", refusing.address());
    let complaint = home.fail(&["healthcheck", "--url", &url]).await;
    assert!(complaint.contains("can't be reached"), "{complaint}");
    let complaint = home.fail(&["healthcheck"]).await;
    assert!(complaint.contains("--url"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_document_is_the_served_one() {
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let printed: Value = serde_json::from_str(&home.succeed(&["openapi"]).await).unwrap();
    assert_eq!(printed, service.get("/openapi.json").await);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn localhost_is_an_address_to_listen_on() {
    let home = Home::with_file();
    let service = Service::start_with(&home, &["--listen", "localhost:0"]).await;
    assert!(service.address.starts_with("127.0.0.1:"), "{}", service.address);
    service.stop().await;
    let complaint = home.fail(&["serve", "--listen", "localhost:none"]).await;
    assert_contains!(complaint, "an IP address or localhost, and a port");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let complaint = Home::with_file().fail(&["serve", "--listen", &address]).await;
    assert!(complaint.contains(&format!("can't listen on {address}")), "{complaint}");
    for part in ["in use", "--listen", "`http.listen`"] {
        assert!(complaint.contains(part), "no {part} in {complaint}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_store_is_named_without_its_password() {
    // The discard port: nothing listens there.
    let home = Home::new("postgres://someone:hunter2@127.0.0.1:9/agents");
    for command in [
        &["serve"][..],
        &["migrate"],
        &["check-config"],
        &["keys", "list"],
        &["run", "hello"],
    ] {
        let complaint = home.fail(command).await;
        assert!(complaint.contains("127.0.0.1:9"), "{complaint}");
        assert!(complaint.to_lowercase().contains("refused"), "{complaint}");
        assert!(!complaint.contains("hunter2"), "{complaint}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_respond_is_given_up() {
    // It accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://someone@{}/agents", silent.local_addr().unwrap());
    let complaint = Home::new(&url).fail(&["serve"]).await;
    assert!(complaint.contains("can't connect to postgres://"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_starts_during_an_outage_of_its_board() {
    let home = Home::with_file().variable("AGENT_RUNTIME__BOARD__URL", "redis://:hunter2@127.0.0.1:9/");
    let service = Service::start(&home).await;
    assert_eq!(service.get("/readyz").await, json!({"status": "ready"}));
    service.run("demo", None, "What is 1 + 1?").await;
    let log = service.stop().await.stderr;
    assert!(log.contains("WARN") && !log.contains("hunter2"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_can_not_be_made_is_named() {
    let home = Home::new("sqlite:///proc/nothing/store.db");
    let complaint = home.fail(&["serve"]).await;
    assert!(complaint.contains("/proc/nothing/store.db"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_output_does_not_stop_the_service() {
    let home = Home::with_file();
    let mut process = home.start_unread(&["serve"]);
    let address = until_found("the service does not listen", async || {
        let log = process.stderr();
        assert!(process.status().is_none(), "{log}");
        let (_, rest) = log.split_once("listening address=")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    let address = address.await;
    home.succeed(&["healthcheck", "--set", &listen(&address)]).await;
    process.signal("TERM");
    assert_eq!(process.end().await.code, Some(0));
}

/// Returns the password of a URL.
fn password(url: &str) -> Option<&str> {
    let (credentials, _) = url.split_once("://")?.1.split_once('@')?;
    Some(credentials.split_once(':')?.1)
}

/// Returns the setting of the address.
fn listen(address: &str) -> String {
    format!("http.listen={address}")
}
