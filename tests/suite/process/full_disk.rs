//! A disk that is full for a while, with the store or with the files of commands: nothing is lost,
//! and the service says what it lacks.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::gate::Gate;
use test_support::wait::until;

use super::binary::Home;
use super::sandbox::{Long, put_commands, results};
use super::service::Service;
use crate::support::members::assert_members;
use crate::support::mock_model::MockModel;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_and_loses_no_run() {
    let gate = Gate::new();
    let mock = MockModel::waiting_behind(&gate).await;
    let home = Home::new("sqlite://disk/store.db")
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "10m")
        .variable("AGENT_RUNTIME__RUNS__COMMIT_PATIENCE", "10m");
    let Some(service) = serve_on_a_disk(&home, "").await else {
        return;
    };
    let root = service.run("echo", None, "root").await;
    let base = root["session_id"].as_str();
    let queued = service.begin("echo", "wait").await;
    let outage = async {
        gate.until_waiting(2).await;
        let filler = disk_of(&home, &service).join("filler");
        fill(&filler);
        gate.open(2);
        let is_ready = async || service.call(Method::GET, "/readyz", None).await;
        until("the service stays ready", async || is_ready().await.0 != StatusCode::OK).await;
        let request = json!({"agent": "echo", "input": "more", "mode": "async"});
        let refused = service.call(Method::POST, "/v1/runs", Some(request)).await;
        for (status, problem) in [is_ready().await, refused] {
            assert_eq!(
                (status, &problem["code"], &problem["detail"]),
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    &json!("store_unavailable"),
                    &json!("the store can't be written now: its disk is full")
                )
            );
        }
        assert_eq!(
            service.get("/v1/runs?status=running").await["data"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
        assert!(service.log().contains("database or disk is full"), "{}", service.log());
        fs::remove_file(filler).unwrap();
        until("the service does not become ready", async || {
            is_ready().await.0 == StatusCode::OK
        })
        .await;
    };
    let (light, ()) = tokio::join!(service.run("echo", base, "wait"), outage);
    assert_eq!(light["output_text"], "done");
    let ended = service.ended(&queued).await;
    assert_members!(ended, {"status": "completed", "attempts": 1});
    assert_eq!(mock.asked(), 3, "no work is repeated");
    service.run("echo", light["session_id"].as_str(), "next").await;
    service.stop().await;
}

/// A file that is larger than what the disk has left.
const LARGE: usize = 2_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_files_have_no_room_says_so() {
    let home = Home::with_file();
    let directory = home.path().join("disk/commands");
    let home = home.variable("AGENT_RUNTIME__SANDBOX__DIRECTORY", directory.to_str().unwrap());
    let Some(service) = serve_on_a_disk(&home, "--set sandbox.namespaces=off").await else {
        return;
    };
    let write = format!("head -c {LARGE} /dev/zero > large; echo written");
    put_commands(&service, "write", &[&write]).await;
    put_commands(&service, "count", &["wc -c < large"]).await;
    let written = service.run("write", None, "go").await;
    assert_eq!(results(&service, &written).await, ["written\n"]);
    let base = written["session_id"].as_str();
    // A run has the directory with the file, so the next one needs another.
    let long = Long::new(6);
    put_commands(&service, "hold", &[&long.command]).await;
    let body = json!({"agent": "hold", "base_session_id": base, "input": "go", "mode": "async"});
    let holding = service.post("/v1/runs", body).await;
    long.until(3).await;
    let filler = disk_of(&home, &service).join("filler");
    fill(&filler);
    let count = async || {
        let counted = service.run("count", base, "go").await;
        results(&service, &counted).await.pop().unwrap()
    };
    let refused = count().await;
    assert!(
        refused.contains("the directory of the run: writing large failed: no space is left on the disk of commands"),
        "{refused}"
    );
    fs::remove_file(filler).unwrap();
    assert_eq!(count().await, format!("{LARGE}\n"));
    service.control(&holding, "cancel").await;
    service.ended(&holding).await;
    service.stop().await;
}

/// Fills the small disk, but not one of the machine.
const TRIES: usize = 4_096;

/// Starts a service that has a small disk at the folder `disk`, or prints why there is none.
async fn serve_on_a_disk(home: &Home, arguments: &str) -> Option<Service> {
    let on_a_disk = |line: &str| {
        let line = format!("mount -t tmpfs -o size=6m tmpfs disk; {line}");
        home.start_shell(&format!("exec unshare --user --map-root-user --mount sh -ec '{line}'"))
    };
    fs::create_dir(home.path().join("disk")).unwrap();
    let tried = on_a_disk("true").end().await;
    if tried.code != Some(0) {
        eprintln!("SKIPPED: no disk can be mounted here: {}", tried.stderr);
        return None;
    }
    let process = on_a_disk(&format!("exec agent-runtime serve {arguments}"));
    Some(Service::listening(process).await)
}

/// Returns where the disk of a service is for others.
fn disk_of(home: &Home, service: &Service) -> PathBuf {
    let disk = home.path().join("disk");
    PathBuf::from(format!("/proc/{}/root{}", service.process_id(), disk.display()))
}

/// Writes to a file until there is no room for another byte.
fn fill(filler: &Path) {
    let mut file = File::create(filler).unwrap();
    for size in [1 << 16, 1] {
        let piece = vec![0; size];
        let mut written = std::iter::repeat_with(|| file.write_all(&piece)).take(TRIES);
        let error = written.find_map(Result::err);
        assert_eq!(error.unwrap().kind(), ErrorKind::StorageFull);
    }
}
