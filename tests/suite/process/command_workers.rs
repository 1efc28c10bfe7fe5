//! Commands at workers: real services and real workers, which share nothing but the store. Each may
//! be killed, stopped or missing.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::proxy::{Proxy, split_url};
use test_support::wait::{until, until_found};

use super::binary::{Ended, Home, Process};
use super::sandbox::{Long, put, put_commands, results};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

on_every_store!(
    commands_run_at_a_worker_as_in_the_service,
    a_worker_has_no_background_jobs_and_the_model_reads_that,
    output_comes_while_the_command_runs,
    a_command_waits_for_a_worker_but_not_for_long,
    the_command_of_a_run_that_is_ended_is_killed,
    the_outcome_of_a_worker_that_is_killed_afterwards_counts,
);

/// A home whose services leave commands to workers.
pub(super) fn home(database: &TestDatabase) -> Home {
    Home::new(database.url())
        .variable("AGENT_RUNTIME__SANDBOX__BACKEND", "worker")
        .variable("AGENT_RUNTIME__SANDBOX__WORKER_WAIT", "20s")
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "500ms")
}

/// A process that runs commands.
pub(super) struct Worker(Process);

impl Worker {
    /// Starts a worker with a directory of its own, and waits until it takes commands.
    pub(super) async fn start(home: &Home, name: &str, settings: &[&str]) -> Self {
        let directory = format!("sandbox.directory={}", home.path().join(name).display());
        let mut arguments = vec!["worker", "--environments", "--set", &directory];
        for setting in settings {
            arguments.extend(["--set", setting]);
        }
        let mut process = home.start(&arguments);
        until("the worker takes no commands", async || {
            assert!(process.status().is_none(), "no worker: {}", process.stderr());
            process.stderr().contains("taking commands")
        })
        .await;
        Self(process)
    }

    /// Asks it to stop; it must do so in order.
    pub(super) async fn stop(self) -> Ended {
        self.0.signal("TERM");
        let ended = self.0.end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("did not"), "{}", ended.stderr);
        ended
    }
}

/// Runs the commands of an agent to their end, and returns what the model reads.
pub(super) async fn run_all(service: &Service, agent: &str, commands: &[&str]) -> (Vec<String>, Value) {
    put_commands(service, agent, commands).await;
    let run = service.run(agent, None, "go").await;
    (results(service, &run).await, run)
}

/// Returns the environment of the session of a run.
async fn environment(service: &Service, run: &Value) -> Value {
    service.get(&session_path(run, "")).await["environment_state"].clone()
}

/// Finds a file below a folder by its name.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find_map(|path| {
        if path.ends_with(name) {
            Some(path)
        } else if path.is_dir() && !path.is_symlink() {
            find(&path, name)
        } else {
            None
        }
    })
}

/// Waits until a command has made the file `begun`, and returns its path.
async fn until_begun(home: &Home) -> PathBuf {
    until_found("the command does not begin", async || find(home.path(), "begun")).await
}

pub(super) async fn no_command_is_left(database: &TestDatabase) {
    let count = "select count(*) from environment_commands";
    assert_eq!(database.number(count).await, 0);
}

async fn commands_run_at_a_worker_as_in_the_service(database: TestDatabase) {
    let home = home(&database);
    let here = Service::start_with(&home, &["--set", "sandbox.backend=local"]).await;
    let there = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let commands = [
        "mkdir -p a/b && echo one > a/b/one && ln -s b/one a/link && cd a && export X=1",
        "pwd | sed 's|.*/||'; cat link; echo \"$X\"; chmod +x link; exit 3",
        "mkdir target && echo x > target/x; echo y > \"$HOME/y\"",
        "cat ../target/x 2>/dev/null; cat target/x \"$HOME/y\"; ls -p; printf 'a\\0b' | wc -c",
        "seq 1 2000",
        "echo error >&2",
        "mkfifo pipe; rm -r b; kill -9 $$",
        "true",
        "echo last > ../z; rm -rf ../a; env | grep -c AGENT_RUNTIME",
    ];
    let (expected, at_home) = run_all(&here, "here", &commands).await;
    let (found, away) = run_all(&there, "there", &commands).await;
    assert_eq!(found, expected);
    let (mut state, mut expected) = (environment(&there, &away).await, environment(&here, &at_home).await);
    // The files have other times.
    for state in [&mut state, &mut expected] {
        assert!(state["workspace"]["tree"].take().is_string(), "{state:#}");
    }
    assert_eq!(state, expected);
    // A long output arrives in several pieces.
    let long = ["seq 1 100000", "cat .agent/output/*.txt | cksum; seq 1 100000 | cksum"];
    let (found, _) = run_all(&there, "long", &long).await;
    let sums: Vec<_> = found[1].lines().collect();
    assert_eq!(sums[0], sums[1]);
    // Another session begins with these files.
    put_commands(&there, "next", &["ls; cat *"]).await;
    put_commands(&here, "next", &["ls; cat *"]).await;
    let session = away["session_id"].as_str();
    let next = [
        there.run("next", session, "go").await,
        here.run("next", session, "go").await,
    ];
    assert_eq!(
        results(&there, &next[0]).await.last(),
        results(&here, &next[1]).await.last()
    );
    no_command_is_left(&database).await;
    worker.stop().await;
    here.stop().await;
    there.stop().await;
}

async fn a_worker_has_no_background_jobs_and_the_model_reads_that(database: TestDatabase) {
    let home = home(&database);
    let service = Service::start(&home).await;
    let call = json!({"name": "shell", "arguments": {"command": "touch made", "background": true}});
    let script = json!({"script": [{"tool_calls": [call]}, {"text": "done"}]});
    put(&service, "sh", script).await;
    let run = service.run("sh", None, "go").await;
    assert_eq!(
        results(&service, &run).await,
        [
            "this service has no background jobs, since it runs commands on other machines; run the command without `background`"
        ]
    );
    assert_eq!(environment(&service, &run).await["workspace"], Value::Null);
    no_command_is_left(&database).await;
    service.stop().await;
}

async fn output_comes_while_the_command_runs(database: TestDatabase) {
    let home = home(&database);
    let service = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let command = "echo first; touch begun; until [ -e seen ]; do sleep 0.05; done; rm begun seen; echo last";
    put_commands(&service, "sh", &[command]).await;
    let run = service.begin("sh", "go").await;
    let mut events = service.follow(&run, 0).await;
    // The command does not end before its output has been seen.
    let output = events.until("tool_call.output").await;
    assert!(output.to_string().contains("first"), "{output:#}");
    let begun = until_begun(&home).await;
    std::fs::write(begun.with_file_name("seen"), "").unwrap();
    let ended = service.ended(&run).await;
    assert_eq!(results(&service, &ended).await, ["first\nlast\n"]);
    worker.stop().await;
    service.stop().await;
}

async fn a_command_waits_for_a_worker_but_not_for_long(database: TestDatabase) {
    let home = home(&database);
    let hasty = Service::start_with(&home, &["--set", "sandbox.worker_wait=500ms"]).await;
    let (found, _) = run_all(&hasty, "hasty", &["echo x > file"]).await;
    assert_contains!(found[0], "no worker has taken the command within 500ms");
    no_command_is_left(&database).await;
    hasty.stop().await;

    let service = Service::start(&home).await;
    put_commands(&service, "sh", &["echo x"]).await;
    let run = service.begin("sh", "go").await;
    let waiting = "select count(*) from environment_commands";
    until("no command waits", async || database.number(waiting).await > 0).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let ended = service.ended(&run).await;
    assert_eq!(results(&service, &ended).await, ["x\n"]);
    worker.stop().await;
    service.stop().await;
}

async fn the_command_of_a_run_that_is_ended_is_killed(database: TestDatabase) {
    let home = home(&database);
    let service = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let number = if database.url().starts_with("sqlite") { 100 } else { 110 };
    for (number, action, status) in [(number, "stop", "stopped"), (number + 1, "cancel", "cancelled")] {
        let long = Long::new(number);
        put_commands(&service, "sh", &[&long.command]).await;
        let run = service.begin("sh", "go").await;
        long.until(3).await;
        service.control(&run, action).await;
        // The command alone would take far longer than this waits.
        let ended = service.ended(&run).await;
        assert_eq!(ended["status"], status, "{ended:#}");
        long.until(0).await;
        if status == "stopped" {
            let path = session_path(&ended, "/files/file");
            let file = service.request(Method::GET, &path).send().await.unwrap();
            assert_eq!(file.text().await.unwrap(), "begun\n");
        }
    }
    no_command_is_left(&database).await;
    worker.stop().await;
    service.stop().await;
}

/// The service stands still while the worker stores the outcome and dies.
async fn the_outcome_of_a_worker_that_is_killed_afterwards_counts(database: TestDatabase) {
    let home = home(&database);
    let service = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let command =
        "echo begun; touch begun; until [ -e go ]; do sleep 0.05; done; rm begun go; echo made > file; cat file";
    put_commands(&service, "sh", &[command]).await;
    let run = service.begin("sh", "go").await;
    service.follow(&run, 0).await.until("tool_call.output").await;
    let begun = until_begun(&home).await;
    // It must not stand still while it has locked what the worker writes.
    let write = if database.url().starts_with("sqlite") {
        "update environment_commands set outcome = outcome where 1 = 0"
    } else {
        "set lock_timeout = '2s'; lock table environment_commands in share mode"
    };
    until("the service holds a lock", async || {
        service.signal("STOP");
        let is_free = database.execute(write).await.is_ok();
        if !is_free {
            service.signal("CONT");
        }
        is_free
    })
    .await;
    std::fs::write(begun.with_file_name("go"), "").unwrap();
    let ended = "select count(*) from environment_commands where outcome is not null";
    until("the command does not end", async || database.number(ended).await > 0).await;
    worker.0.kill();
    service.signal("CONT");
    let ended = service.ended(&run).await;
    assert_eq!(results(&service, &ended).await, ["begun\nmade\n"]);
    no_command_is_left(&database).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_of_a_killed_worker_is_not_run_again() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let home = home(&database);
    let service = Service::start(&home).await;
    let first = Worker::start(&home, "first", &[]).await;
    let long = Long::new(120);
    put_commands(&service, "sh", &["echo before > before", &long.command, "ls"]).await;
    let run = service.begin("sh", "go").await;
    long.until(3).await;
    let second = Worker::start(&home, "second", &[]).await;
    first.0.kill();
    long.until(0).await;
    let ended = service.ended(&run).await;
    let found = results(&service, &ended).await;
    assert_contains!(found[1], "the worker that ran the command is lost", "uncertain");
    // The files are those before the command, and the other worker goes on with them.
    assert_eq!(found[2], "before\n");
    assert_eq!(long.processes(), 0);
    no_command_is_left(&database).await;
    second.stop().await;
    service.stop().await;
}

/// The heartbeat of the service that waits stops with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_its_command_and_another_resumes_the_run() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let home = home(&database).variable("AGENT_RUNTIME__QUEUE__LEASE", "12s");
    let first = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let long = Long::new(130);
    let call = |command: &str| json!({"tool_calls": [{"name": "shell", "arguments": {"command": command}}]});
    let script = [
        call("echo before > before"),
        call(&long.command),
        call("ls"),
        json!({"text": "done"}),
    ];
    put(&first, "sh", json!({"durability": "step", "script": script})).await;
    let run = first.begin("sh", "go").await;
    long.until(3).await;
    first.kill();
    let second = Service::start(&home).await;
    let ended = second.ended(&run).await;
    let found = results(&second, &ended).await;
    assert!(found[1].contains("its effect is uncertain"), "{found:?}");
    assert_eq!(found[2], "before\n");
    long.until(0).await;
    worker.stop().await;
    second.stop().await;
}

/// The connection is cut when the worker stores new files, and when it reads those of a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_connection_is_cut_reads_and_stores_the_files_all_the_same() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let home = home(&database);
    let service = Service::start(&home).await;
    put_commands(&service, "sh", &["echo line >> file; cat file"]).await;
    let mut base: Option<String> = None;
    for (mark, expected) in [
        ("insert into contents", "line\n"),
        ("select hash, kind, size", "line\nline\n"),
    ] {
        let proxy = Proxy::start(split_url(database.url()).0, mark).await;
        let url = format!("store.url={}", proxy.url(database.url()));
        let worker = Worker::start(&home, "worker", &[&url]).await;
        let run = service.run("sh", base.as_deref(), "go").await;
        let found = results(&service, &run).await;
        assert_eq!(found.last().map(String::as_str), Some(expected), "{mark}");
        assert_eq!(proxy.cuts(), 1, "{mark}");
        base = run["session_id"].as_str().map(str::to_owned);
        worker.stop().await;
    }
    no_command_is_left(&database).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_share_and_their_own_limits_count() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let home = home(&database);
    let service = Service::start(&home).await;
    let settings = ["sandbox.worker_commands=1", "sandbox.max_output_bytes=2000"];
    let workers = [
        Worker::start(&home, "first", &settings).await,
        Worker::start(&home, "second", &settings).await,
    ];
    let long = [Long::new(140), Long::new(141)];
    let mut runs = Vec::new();
    for (long, name) in long.iter().zip(["one", "two"]) {
        put_commands(&service, name, &[&long.command]).await;
        runs.push(service.begin(name, "go").await);
    }
    for long in &long {
        long.until(3).await;
    }
    for run in &runs {
        service.control(run, "cancel").await;
        service.ended(run).await;
    }
    let (found, _) = run_all(&service, "loud", &["head -c 100000 /dev/zero | tr '\\0' x; sleep 1000"]).await;
    assert_contains!(found[0], "wrote more output than a command may");
    for worker in workers {
        worker.stop().await;
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_lets_short_commands_end_and_kills_the_others() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let home = home(&database).variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "2s");
    let service = Service::start(&home).await;
    let worker = Worker::start(&home, "worker", &[]).await;
    let long = Long::new(150);
    put_commands(&service, "long", &[&long.command]).await;
    put_commands(&service, "short", &["echo begun; sleep 1; echo ended"]).await;
    let runs = [service.begin("long", "go").await, service.begin("short", "go").await];
    long.until(3).await;
    service.follow(&runs[1], 0).await.until("tool_call.output").await;
    let ended = worker.stop().await;
    assert!(ended.stderr.contains("no command is left"), "{}", ended.stderr);
    long.until(0).await;
    let found = results(&service, &service.ended(&runs[0]).await).await;
    assert_contains!(found[0], "the worker was shut down and killed the command");
    let found = results(&service, &service.ended(&runs[1]).await).await;
    assert_eq!(found, ["begun\nended\n"]);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_refuses_a_host_that_is_too_weak() {
    let home = Home::with_file();
    let refusal = home
        .fail(&["worker", "--environments", "--set", "sandbox.landlock_abi=99"])
        .await;
    assert_contains!(refusal, "commands can't run here: landlock abi 99 is required");
    let refusal = home.fail(&["worker"]).await;
    assert!(refusal.contains("--environments"), "{refusal}");
}
