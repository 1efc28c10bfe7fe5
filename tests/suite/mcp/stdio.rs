//! Servers that are programs: what they can do in the sandbox, how they end and how they misbehave.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use test_support::logs::CapturedLog;
use test_support::raw_server::{RawReply, RawServer};
use test_support::wait::until;

use super::McpApp;
use crate::sandbox_network::has_namespaces;
use crate::support::answer::{read, with_json};
use crate::support::text::{assert_contains, assert_lacks};

const STUB: &str = include_str!("stub.py");
/// More than a program needs to start, even on a busy machine.
const PATIENT: &str = "connect_timeout = '3m'\n";

/// The definition of the server of `stub.py`, with further lines.
fn stub(more: &str) -> String {
    format!("command = 'python3'\nargs = ['-c', '''\n{STUB}''']\n{PATIENT}{more}\n")
}

async fn start(more: &str) -> McpApp {
    McpApp::alone(&[("stub", "", &stub(more))]).await
}

async fn ask(app: &McpApp, what: &str) -> String {
    app.use_tool("stub_do", json!({"what": what})).await
}

async fn execute(app: &McpApp, code: &str) -> String {
    app.use_tool("stub_do", json!({"what": "code", "code": code})).await
}

/// Returns the inode of the directory of the process, which no other server has. Its number means
/// nothing here.
async fn process_of(app: &McpApp) -> String {
    execute(app, "import os; result = str(os.stat('.').st_ino)").await
}

fn is_alive(directory: &str) -> bool {
    processes_in(directory) > 0
}

/// Counts the processes that work in a directory, named by its inode: its path is the same for all
/// processes with a mount namespace. One that has ended works nowhere.
fn processes_in(directory: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let works_there = |entry: &std::fs::DirEntry| {
        let cwd = std::fs::metadata(entry.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd.ino().to_string() == directory)
    };
    entries.filter(works_there).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_nothing_but_what_its_definition_names() {
    let file = tempfile::tempdir().unwrap();
    let named = file.path().join("named");
    std::fs::create_dir(&named).unwrap();
    std::fs::write(named.join("text"), "for the server").unwrap();
    let more = format!("read_only = [{named:?}]\n[env]\nMODE = 'quick'\n");
    let app = start(&more).await;
    let variables = execute(&app, "import os; result = ' '.join(sorted(os.environ))").await;
    assert_eq!(variables, "HOME LANG MODE PATH TMPDIR");
    let read = |path: &Path| format!("result = open({:?}).read()", path.to_str().unwrap());
    assert_eq!(execute(&app, &read(&named.join("text"))).await, "for the server");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for forbidden in [own.as_path(), Path::new("/etc/shadow"), &file.path().join("other")] {
        let refused = execute(&app, &read(forbidden)).await;
        assert!(
            refused.contains("PermissionError") || refused.contains("FileNotFoundError"),
            "{refused}"
        );
    }
    let socket = execute(&app, "import socket; result = socket.socket()").await;
    assert!(socket.starts_with("PermissionError"), "{socket}");
    let write = "open('note', 'w').write('x'); import os; result = str(os.stat('.').st_ino)";
    let directory = execute(&app, write).await;
    assert!(is_alive(&directory), "{directory}");
    app.finish().await;
    until("no process is left", || async { processes_in(&directory) == 0 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_serves_all_runs_and_ends_with_the_service() {
    let app = start("").await;
    let process = process_of(&app).await;
    assert_eq!(process_of(&app).await, process);
    ask(&app, "child").await;
    assert_eq!(processes_in(&process), 2);
    app.finish().await;
    until("no process is left", || async { processes_in(&process) == 0 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenant_has_a_process() {
    let app = start("").await;
    let first = process_of(&app).await;
    let (_, key) = app.make_key("other", &[store::keys::Scope::Admin]).await;
    let definition = json!({"model": "mock/m", "mcp": ["stub"]});
    let put = app.request(reqwest::Method::PUT, "/v1/agents/user").bearer_auth(&key);
    read(with_json(put, &definition)).await.ok();
    let calls = json!([["c1", "stub_do", {"code": "import os; result = str(os.stat('.').st_ino)"}]]);
    let run = app.request(reqwest::Method::POST, "/v1/runs").bearer_auth(&key);
    let request = json!({"agent": "user", "input": calls.to_string()});
    let run = read(with_json(run, &request)).await.ok();
    let second = run["output_text"].as_str().unwrap();
    assert!(is_alive(second) && second != first, "{run:#}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_misbehaves_is_an_error_of_the_call_and_is_started_again() {
    for (what, expected) in [
        ("exit", "its process has ended with the exit code 3"),
        ("garbage", "that is no message of the protocol"),
        ("endless line", "wrote"),
        ("flood", "wrote more output than allowed"),
        ("noise", "wrote more output than allowed"),
        ("memory", "it used more memory than allowed"),
    ] {
        let settings = [("sandbox.max_memory_bytes", "268435456")];
        let definition = stub("max_response_bytes = 65536");
        let app = McpApp::alone_with(&[("stub", "", &definition)], &settings).await;
        let process = process_of(&app).await;
        let error = ask(&app, what).await;
        assert!(error.contains(expected), "{what}: {error}");
        until("the process has ended", || async { !is_alive(&process) }).await;
        assert_ne!(process_of(&app).await, process, "{what}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greeting_on_standard_output_is_ignored() {
    let app = start("").await;
    let process = process_of(&app).await;
    assert_eq!(ask(&app, "greeting").await, "well behaved");
    assert_eq!(process_of(&app).await, process);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_without_an_id_belongs_to_the_only_request() {
    let app = start("timeout = '10m'").await;
    for what in ["no id", "empty id", "negative id", "new id"] {
        let error = ask(&app, what).await;
        assert!(error.contains("lost the thread"), "{what}: {error}");
        assert_eq!(ask(&app, "nothing").await, "well behaved");
    }
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_in_a_batch_or_without_strict_json_reaches_the_model() {
    let app = start("timeout = '10m'").await;
    let process = process_of(&app).await;
    for what in ["batch of one", "batch", "nan"] {
        assert_eq!(ask(&app, what).await, "well behaved", "{what}");
    }
    let cut = execute(&app, r"result = 'EXECUTED \ud83d'").await;
    assert_eq!(cut, "EXECUTED \u{fffd}");
    assert_eq!(process_of(&app).await, process);
    app.finish().await;
}

// The capture has the lines of one thread.
#[tokio::test]
async fn standard_error_is_logged_without_secrets() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "hunter2-hunter2").unwrap();
    let settings = [("tools.secrets.token.file", secret.path().to_str().unwrap())];
    let definition = stub("[env]\nTOKEN = { secret = 'token' }");
    let (log, _listening) = CapturedLog::listening(tracing::Level::DEBUG);
    let app = McpApp::alone_with(&[("stub", "", &definition)], &settings).await;
    assert_eq!(ask(&app, "log").await, "well behaved");
    until("the lines are logged", || async {
        log.text().contains("line=\"last\"")
    })
    .await;
    let text = log.text();
    let lines = text
        .lines()
        .filter(|line| line.contains("standard error of an MCP server"));
    let lines: Vec<_> = lines
        .map(|line| line.split_once("line=").unwrap().1.split('"').nth(1).unwrap())
        .collect();
    assert_eq!([lines[0], lines[2]], ["the token is [secret]", "last"], "{text}");
    // A line that is cut also loses what may be the beginning of a secret.
    let cut = lines[1].trim_start_matches('y').len();
    assert!((950..=1_000).contains(&lines[1].len()) && cut <= "…".len(), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    // The process serves more than the run that started it.
    let of_server = text.lines().find(|line| line.contains("line=\"last\"")).unwrap();
    assert_contains!(of_server, " mcp{server=\"stub\"}:"; "{text}");
    assert_lacks!(of_server, "run_id"; "{text}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_repeats_its_secret_does_not_show_it() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "hunter2-hunter2").unwrap();
    let settings = [("tools.secrets.token.file", secret.path().to_str().unwrap())];
    let definition = stub("[env]\nTOKEN = { secret = 'token' }");
    let app = McpApp::alone_with(&[("stub", "", &definition)], &settings).await;
    let code = "import os; result = os.environ['TOKEN'] + ' ' * 100000 + os.environ['TOKEN'] + '.'";
    let events = json!([["c1", "stub_do", {"code": code}]]).to_string();
    let events = app.stream(json!({"agent": "user", "input": events})).await;
    let seen = json!(events).to_string() + &json!(app.mock.requests()).to_string();
    assert_contains!(seen, "[secret]   ");
    assert_lacks!(seen, "hunter2-hunter2");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_a_network_reaches_the_hosts_of_commands() {
    if !has_namespaces() {
        return;
    }
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let settings = [
        ("sandbox.network.allow_hosts", "[\"127.0.0.1\"]"),
        ("sandbox.network.allow_networks", "[\"127.0.0.1\"]"),
        ("sandbox.network.ports", "[]"),
    ];
    let servers = [
        ("stub", "", &*stub("network = true")),
        ("alone", "", &*stub("network = false")),
    ];
    let app = McpApp::alone_with(&servers, &settings).await;
    let get = |url: &str| {
        let code = format!("import urllib.request as r; result = r.urlopen({url:?}).read().decode()");
        json!({"code": code})
    };
    assert_eq!(app.use_tool("stub_do", get(&server.url("/"))).await, "permitted");
    let other = format!("http://127.0.0.2:{}/", server.port());
    let refused = app.use_tool("stub_do", get(&other)).await;
    assert_eq!(refused, "HTTPError: HTTP Error 403: Forbidden");
    let refused = app.use_tool("alone_do", get(&server.url("/"))).await;
    assert!(refused.contains("Operation not permitted"), "{refused}");
    assert_eq!(server.requests().len(), 1);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_hangs_is_killed_at_the_next_call() {
    let app = start("timeout = '1s'").await;
    let process = process_of(&app).await;
    let error = ask(&app, "hang").await;
    assert!(error.contains("did not respond within 1s"), "{error}");
    assert_ne!(process_of(&app).await, process);
    until("the process has ended", || async { !is_alive(&process) }).await;
    app.finish().await;
}

/// The first use tries both kinds of revisions, and each needs a process.
// The capture has the lines of one thread.
#[tokio::test]
async fn a_process_that_dies_again_and_again_has_to_wait() {
    let (log, _listening) = CapturedLog::listening(tracing::Level::DEBUG);
    let app = start("").await;
    let mut errors = Vec::new();
    for _ in 0..7 {
        errors.push(ask(&app, "exit").await);
    }
    let exits = errors.iter().filter(|error| error.contains("the exit code 3")).count();
    assert!((2..=5).contains(&exits), "{errors:#?}");
    let request = app.mock.requests().pop().unwrap();
    let tool = &request["tools"][0]["function"];
    assert_eq!(tool["name"], "stub_unavailable", "{errors:#?}");
    let description = tool["description"].as_str().unwrap();
    assert!(description.contains("has to wait"), "{description}");
    app.finish().await;
    let text = log.text();
    let ended = text.matches("the process of an MCP server has ended").count();
    assert_eq!(ended, 5, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_can_not_be_started_is_a_missing_server() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "hunter2-hunter2").unwrap();
    let settings = [("tools.secrets.token.file", secret.path().to_str().unwrap())];
    let elsewhere = tempfile::tempdir().unwrap();
    let script = elsewhere.path().join("server");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let quiet = "command = 'sh'\nargs = ['-c', 'echo first >&2; echo \"last $KEY\" >&2; exit 4']";
    for (definition, expected) in [
        (
            "command = 'no-such-program'".to_owned(),
            vec![
                "its process can't be started",
                "`command`: no directory of its `PATH` has the program no-such-program",
            ],
        ),
        (
            format!("command = {script:?}"),
            vec![
                "its process can't be started",
                "`command`: ",
                "/server: add its directory to `read_only`",
            ],
        ),
        (
            "command = 'false'".to_owned(),
            vec!["has ended with the exit code 1 (`command` is /usr/bin/false)"],
        ),
        (
            format!("{quiet}\nenv = {{ KEY = {{ secret = 'token' }} }}"),
            vec![
                "has ended with the exit code 4 (`command` is /",
                "the end of its standard error: first | last [secret]",
            ],
        ),
        (
            "command = 'sh'\nargs = ['-c', 'echo waiting for a lock >&2; exec sleep 600']\nconnect_timeout = '9s'"
                .to_owned(),
            vec![
                "its process did not respond within 9s (`command` is /",
                "standard error: waiting for a lock",
            ],
        ),
    ] {
        let more = if definition.contains("connect_timeout") {
            ""
        } else {
            PATIENT
        };
        let description = why_unavailable(&format!("{more}{definition}\n"), &settings).await;
        for part in expected {
            assert!(description.contains(part), "{description}\nshould have\n{part}");
        }
    }
}

/// Returns what the model reads about a server that can't be started.
async fn why_unavailable(definition: &str, settings: &[(&str, &str)]) -> String {
    let app = McpApp::alone_with(&[("stub", "", definition)], settings).await;
    app.use_tool("none", json!({})).await;
    let request = app.mock.requests().pop().unwrap();
    let tool = &request["tools"][0]["function"];
    assert_eq!(tool["name"], "stub_unavailable", "{request:#}");
    app.finish().await;
    tool["description"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_can_not_be_started_names_its_interpreter() {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let interpreter = elsewhere.path().join("interpreter");
    write(&interpreter, "#!/bin/sh\nexit 0\n");
    let outside = format!("#! {} -u", interpreter.display());
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let definition = format!("{PATIENT}command = {script:?}\nread_only = [{:?}]\n", folder.path());
    let shown = format!("`command`: the interpreter of {}: ", script.display());
    for (first_line, problem) in [
        ("#!/nope/python", "/nope/python is no file that can be executed"),
        ("#!/bin/sh\r", r"/bin/sh\r is no file that can be executed"),
        (
            "#!/usr/bin/env nosuchprog",
            "no directory of its `PATH` has the program nosuchprog",
        ),
        (outside.as_str(), "the sandbox does not let it execute "),
    ] {
        write(&script, &format!("{first_line}\nexit 0\n"));
        let description = why_unavailable(&definition, &[]).await;
        assert!(description.contains(&format!("{shown}{problem}")), "{description}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_isolation_a_program_may_do_what_the_service_may_do() {
    let settings = [("sandbox.isolation", "none")];
    let app = McpApp::alone_with(&[("stub", "", &stub(""))], &settings).await;
    let socket = execute(&app, "import socket; result = socket.socket().type.name").await;
    assert_eq!(socket, "SOCK_STREAM");
    // The environment stays empty, and processes do not outlive the service.
    assert_eq!(
        execute(&app, "import os; result = os.environ.get('CARGO')").await,
        "None"
    );
    let process = process_of(&app).await;
    app.finish().await;
    until("the process has ended", || async { !is_alive(&process) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_process_leaves_the_service_fast() {
    let app = start("timeout = '1s'").await;
    ask(&app, "hang").await;
    let began = std::time::Instant::now();
    app.finish().await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
