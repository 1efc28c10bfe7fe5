//! Commands of agents in the real service: what it says and refuses at its start, and what becomes
//! of commands when runs or the service end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::wait::{until, until_found};

use super::binary::{Ended, Home, PATIENCE};
use super::service::Service;
use crate::support::members::extended;
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

/// The directory of commands, relative to the home.
const DIRECTORY: &str = "commands";

/// A home with a directory for commands of its own.
fn home() -> Home {
    let home = Home::with_file();
    let directory = home.path().join(DIRECTORY);
    home.variable("AGENT_RUNTIME__SANDBOX__DIRECTORY", directory.to_str().unwrap())
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "500ms")
}

/// Waits until the service has said what holds, and returns the line.
async fn line(service: &Service) -> String {
    until_found("no line about the sandbox", async || {
        let log = service.log();
        let line = log.lines().find(|line| line.contains("sandbox: "));
        line.map(str::to_owned)
    })
    .await
}

/// Returns the definition of an agent that plays a script with a shell.
fn scripted(more: &Value) -> Value {
    let definition = json!({"model": "demo/demo", "driver": "scripted", "tools": ["shell", "read_file"]});
    extended(definition, more)
}

/// Defines an agent that plays a script with a shell.
pub(super) async fn put(service: &Service, name: &str, more: Value) {
    service.put_agent(name, scripted(&more)).await;
}

/// Defines an agent that runs these commands, one after the other.
pub(super) async fn put_commands(service: &Service, name: &str, commands: &[&str]) {
    let call = |command: &&str| json!({"tool_calls": [{"name": "shell", "arguments": {"command": command}}]});
    let script = commands.iter().map(call).chain([json!({"text": "done"})]);
    put(service, name, json!({"script": script.collect::<Vec<_>>()})).await;
}

/// Returns the texts of the results of a session's calls.
pub(super) async fn results(service: &Service, run: &Value) -> Vec<String> {
    let messages = service.get(&session_path(run, "/messages")).await;
    let messages = messages["data"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    let text = |message: &Value| message["content"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    results.map(text).collect()
}

/// A command that waits for long in several ways, and the argument of its processes.
pub(super) struct Long {
    pub(super) command: String,
    seconds: String,
}

impl Long {
    pub(super) fn new(number: u32) -> Self {
        let seconds = format!("{}.{}", 1000 + number, std::process::id());
        let command =
            format!("echo begun > file; setsid sleep {seconds} & (trap '' TERM; sleep {seconds}) & sleep {seconds}");
        Self { command, seconds }
    }

    /// Counts the processes with the argument.
    pub(super) fn processes(&self) -> usize {
        let arguments = format!("sleep\0{}\0", self.seconds);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| line == arguments.as_bytes()).count()
    }

    pub(super) async fn until(&self, processes: usize) {
        let missing = format!("there are never {processes} processes");
        until(&missing, async || self.processes() == processes).await;
    }
}

/// Waits for the end, which must be in order.
async fn end(service: Service) -> Ended {
    let ended = service.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("did not end"), "{}", ended.stderr);
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_says_what_keeps_commands_in() {
    let home = home();
    let service = Service::start_with(&home, &["--set", "sandbox.namespaces=off"]).await;
    let said = line(&service).await;
    let (_, said) = said.split_once("sandbox: ").unwrap();
    assert!(said.starts_with("landlock abi "), "{said}");
    assert_contains!(said, ", seccomp, ", "no user namespace");
    assert_eq!(service.log().matches("sandbox: ").count(), 1);
    put_commands(
        &service,
        "sh",
        &["cat /etc/shadow", "env", "echo made > file; cat file"],
    )
    .await;
    let run = service.run("sh", None, "go").await;
    let results = results(&service, &run).await;
    assert!(results[0].contains("[exit code 1]"), "{results:?}");
    assert!(!results[1].contains("AGENT_RUNTIME"), "{results:?}");
    assert_eq!(results[2], "made\n");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_refuses_to_start_with_less_than_is_required() {
    let home = home();
    let refusal = home.fail(&["serve", "--set", "sandbox.landlock_abi=99"]).await;
    assert_contains!(
        refusal,
        "commands can't run as the configuration demands: landlock abi 99 is required"
    );
    let cgroup = format!("sandbox.cgroup={}", home.path().display());
    let refusal = home.fail(&["serve", "--set", &cgroup]).await;
    assert_contains!(
        refusal,
        "commands can't run as the configuration demands: commands can't have control groups"
    );
    let directory = home.path().join(DIRECTORY);
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o755)).unwrap();
    let refusal = home.fail(&["serve", "--set", "sandbox.required=true"]).await;
    assert_contains!(refusal, "the directory of the sandbox can't be used");
    // Unless commands are required, only they fail.
    let service = Service::start(&home).await;
    put_commands(&service, "sh", &["echo x"]).await;
    let run = service.run("sh", None, "go").await;
    let results = results(&service, &run).await;
    assert_contains!(
        results[0],
        "this service can't run commands: the directory of the sandbox can't be used"
    );
    service.stop().await;
}

/// A container that allows no user namespaces is played by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_refuses_to_start_without_namespaces_that_are_required() {
    let home = home();
    let command = "unshare --user --map-root-user --fork --kill-child sh -c \
                   'echo 0 > /proc/sys/user/max_user_namespaces || exit 77; \
                   exec agent-runtime serve --set sandbox.namespaces=required'";
    let ended = home.start_shell(command).end().await;
    if ended.code == Some(77) || ended.stderr.contains("unshare") {
        return eprintln!("SKIPPED: there are no user namespaces here: {}", ended.stderr);
    }
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_contains!(ended.stderr, "namespaces are required and missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_isolation_the_service_says_so() {
    let home = home();
    let service = Service::start_with(&home, &["--set", "sandbox.isolation=none"]).await;
    let said = line(&service).await;
    assert_contains!(said, "sandbox: none, commands may do what the service may do");
    put_commands(&service, "sh", &["head -c 5 /proc/version; sleep 1000 & echo x"]).await;
    let run = service.run("sh", None, "go").await;
    assert_eq!(results(&service, &run).await, ["Linuxx\n"]);
    service.stop().await;
}

/// Only the configuration decides about the sandbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_can_not_choose_the_isolation() {
    let home = home();
    let service = Service::start(&home).await;
    for more in [
        json!({"sandbox": {"isolation": "none"}}),
        json!({"isolation": "none"}),
        json!({"tools": [{"name": "shell", "isolation": "none"}]}),
    ] {
        let put = service.call(Method::PUT, "/v1/agents/sh", Some(scripted(&more)));
        let (status, problem) = put.await;
        assert!(status.is_client_error(), "{more}: {status} {problem:#}");
    }
    let call = json!({"name": "shell", "arguments": {"command": "echo x", "isolation": "none"}});
    let script = json!({"script": [{"tool_calls": [call]}, {"text": "done"}]});
    put(&service, "sh", script).await;
    let run = service.run("sh", None, "go").await;
    let results = results(&service, &run).await;
    assert!(results[0].contains("isolation"), "{results:?}");
    service.stop().await;
}

/// Starts a run that executes a command, maybe as a background job, and waits for its end.
async fn begin(service: &Service, long: &Long, is_job: bool) -> Value {
    if is_job {
        let call = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
        let script = json!([
            call("shell", json!({"command": "echo before > first"})),
            call("shell", json!({"command": long.command, "background": true})),
            call("shell_job", json!({"id": "job-1", "action": "wait", "timeout_seconds": 300})),
            {"text": "done"},
        ]);
        put(
            service,
            "sh",
            json!({"script": script, "tools": ["shell", "shell_job"]}),
        )
        .await;
    } else {
        put_commands(service, "sh", &["echo before > first", &long.command]).await;
    }
    let run = service.begin("sh", "go").await;
    long.until(3).await;
    run
}

/// Checks that no process is left. No job has any when its run has ended.
async fn assert_gone(long: &Long, is_job: bool) {
    if is_job {
        assert_eq!(long.processes(), 0);
    }
    long.until(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_leaves_no_process() {
    for (number, is_job) in [(1, false), (11, true)] {
        let home = home();
        let service = Service::start(&home).await;
        let long = Long::new(number);
        begin(&service, &long, is_job).await;
        service.signal("KILL");
        long.until(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_of_a_run_that_is_ended_is_killed() {
    let home = home();
    let service = Service::start(&home).await;
    for (number, action, status, is_job) in [
        (2, "stop", "stopped", false),
        (3, "cancel", "cancelled", false),
        (12, "stop", "stopped", true),
        (13, "cancel", "cancelled", true),
    ] {
        let long = Long::new(number);
        let run = begin(&service, &long, is_job).await;
        service.control(&run, action).await;
        let ended = service.ended(&run).await;
        assert_eq!(ended["status"], status, "{ended:#}");
        assert_gone(&long, is_job).await;
        if status == "stopped" {
            // What the commands have made is in the session.
            for (file, content) in [("first", "before\n"), ("file", "begun\n")] {
                let path = session_path(&ended, &format!("/files/{file}"));
                let response = service.request(Method::GET, &path).send().await.unwrap();
                assert_eq!(response.status(), StatusCode::OK, "{file}");
                assert_eq!(response.text().await.unwrap(), content);
            }
        }
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_commands() {
    for (number, is_job) in [(4, false), (14, true)] {
        let home = home();
        let service = Service::start(&home).await;
        let long = Long::new(number);
        begin(&service, &long, is_job).await;
        service.signal("TERM");
        end(service).await;
        assert_gone(&long, is_job).await;
        // Nothing of the directories is left either.
        let left: Vec<_> = fs::read_dir(home.path().join(DIRECTORY)).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Each writes its name, and finds nothing else for as long as the other runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_at_the_same_time_do_not_share_a_directory() {
    let home = home();
    let service = Service::start(&home).await;
    let command = "stat -c %i .; mktemp ./XXXXXX >&2; for i in 1 2 3 4 5 6 7 8 9 10; do test $(ls | wc -l) = 1 || echo shared; sleep 0.05; done";
    put_commands(&service, "sh", &[command]).await;
    let runs = futures_util::future::join_all((0..4).map(|_| service.run("sh", None, "go"))).await;
    let mut directories = Vec::new();
    for run in &runs {
        let results = results(&service, run).await;
        assert!(!results[0].contains("shared"), "{results:?}");
        directories.push(results[0].clone());
    }
    directories.sort();
    directories.dedup();
    assert_eq!(directories.len(), 4, "{directories:?}");
    service.stop().await;
}

/// Each command prints `reached` if it reaches the directory of the other run, as it does without a
/// sandbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reaches_no_directory_of_another_run() {
    for (setting, is_reached) in [
        ("sandbox.namespaces=off", false),
        ("sandbox.namespaces=auto", false),
        ("sandbox.isolation=none", true),
    ] {
        let home = home();
        let service = Service::start_with(&home, &["--set", setting]).await;
        let long = Long::new(5);
        put_commands(
            &service,
            "victim",
            &[&format!("echo hidden > secret; {}", long.command)],
        )
        .await;
        let victim = service.begin("victim", "go").await;
        long.until(3).await;
        let directory = find(&home.path().join(DIRECTORY), "secret");
        let directory = directory.to_str().unwrap();
        let attacks = [
            "ls D",
            "cat D/secret",
            "cd D && ls",
            "ln -s D link && cat link/secret",
            "cat /proc/[0-9]*/cwd/secret 2>/dev/null | grep hidden",
            "cat /proc/[0-9]*/root/D/secret 2>/dev/null | grep hidden",
            "ln D/secret hard",
            "echo more >> D/secret",
            "echo x > D/new",
            "mkdir D/below",
            "ln -s /etc D/etc",
            "mv D/secret mine && mv mine D/secret",
            "rm D/new",
        ];
        let attacks = attacks.map(|attack| format!("{} && echo reached", attack.replace('D', directory)));
        put_commands(&service, "thief", &attacks.each_ref().map(String::as_str)).await;
        let run = service.run("thief", None, "go").await;
        for (attack, result) in attacks.iter().zip(results(&service, &run).await) {
            assert_eq!(
                result.contains("reached\n"),
                is_reached,
                "{setting}: {attack}: {result}"
            );
        }
        if !is_reached {
            let secret = fs::read_to_string(format!("{directory}/secret")).unwrap();
            assert_eq!(secret, "hidden\n");
            let mut names: Vec<_> = fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            assert_eq!(names, ["file", "secret"]);
        }
        service.control(&victim, "cancel").await;
        service.ended(&victim).await;
        service.stop().await;
    }
}

/// Returns the directory below another one that has a file.
fn find(directory: &Path, file: &str) -> PathBuf {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let mut entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
        if entries.by_ref().any(|entry| entry.file_name() == file) {
            return directory;
        }
        let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
        waiting.extend(
            entries
                .filter(|entry| entry.file_type().unwrap().is_dir())
                .map(|entry| entry.path()),
        );
    }
    panic!("no directory has {file}");
}
