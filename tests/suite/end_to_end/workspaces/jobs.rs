//! Background jobs in runs: they end with their run, and the session has what they have written.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::operations::plain_shell;
use super::shell::LIST;
use super::{assert_valid, calls, file, files, put_scripted, results, tree, write};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::TestApp;

on_every_store!(
    a_run_reads_and_stops_a_job_and_the_next_run_goes_on_without_it,
    a_run_that_ends_kills_its_jobs_and_has_their_files,
    jobs_of_a_subagent_end_with_it,
    a_run_keeps_its_answer_and_files_if_its_jobs_leave_too_many,
);

/// A step that starts a job.
fn job(command: &str) -> Value {
    calls(&[("shell", json!({"command": command, "background": true}))])
}

fn act(action: &str) -> Value {
    calls(&[(
        "shell_job",
        json!({"id": "job-1", "action": action, "timeout_seconds": 60}),
    )])
}

fn tools() -> Value {
    json!({"tools": ["shell", "shell_job", "write_file", "read_file"]})
}

/// A job that writes all the time, with a process in a session of its own.
struct Busy {
    command: String,
    seconds: String,
}

impl Busy {
    fn new(number: u128) -> Self {
        let seconds = format!("{}.{}{number}", 3000, uuid::Uuid::now_v7().as_u128() % 1_000_000_000);
        let write = "mkdir -p log; i=0; while true; do i=$((i+1)); echo $i > log/$((i % 9)); echo $i > count; done";
        Self {
            command: format!("setsid sleep {seconds} & {write}"),
            seconds,
        }
    }

    fn processes(&self) -> usize {
        let arguments = format!("sleep\0{}\0", self.seconds);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| line == arguments.as_bytes()).count()
    }
}

async fn a_run_reads_and_stops_a_job_and_the_next_run_goes_on_without_it(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    // A server without a network, which answers what it finds in a pipe.
    let server = "cd $TMPDIR; mkfifo asked answered; echo ready; \
                  while read -r line <asked; do echo \"$line served\" | tee -a $OLDPWD/log >answered; done";
    let ask = |what: &str| {
        let command = format!("echo {what} >$TMPDIR/asked; cat $TMPDIR/answered");
        calls(&[("shell", json!({"command": command}))])
    };
    let steps = [
        job(server),
        ask("one"),
        ask("two"),
        act("stop"),
        calls(&[write("after", "stopped")]),
    ];
    put_scripted(&app, "server", &steps, tools()).await;
    let run = app.run_with(json!({"agent": "server", "input": "go"})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let read = results(&app, &run).await;
    assert!(read[0].starts_with("ready\n[job-1 has been running for "), "{read:#?}");
    assert_eq!(read[1..3], ["one served\n", "two served\n"]);
    assert!(read[3].contains("job-1 has ended after ") && read[3].contains(" s: stopped]"));
    assert_eq!(files(&app, &run["session_id"]).await, ["after", "log"]);
    assert_eq!(file(&app, &run["session_id"], "log").await, "one served\ntwo served\n");
    assert_valid(&app, &run["session_id"]).await;

    put_scripted(&app, "next", &[act("read"), job("true")], tools()).await;
    let next = app
        .run_with(json!({"agent": "next", "input": "go", "base_session_id": run["session_id"]}))
        .await;
    let read = results(&app, &next).await;
    assert!(read[0].starts_with("job-1 and its output are gone."), "{read:#?}");
    assert!(read[1].contains("[job-2 has ended after"), "{read:#?}");
    app.finish().await;
}

/// The run completes, waits for an approval, or has no time left.
async fn a_run_that_ends_kills_its_jobs_and_has_their_files(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let elsewhere = TestApp::start(database.url(), &mock, &[]).await;
    put_scripted(
        &elsewhere,
        "lister",
        &[calls(&[("shell", json!({"command": LIST}))])],
        json!({"tools": ["shell"]}),
    )
    .await;
    let mut of_wait = tools();
    of_wait["approvals"] = json!([{"tools": ["write_file"], "approval": "always"}]);
    let mut of_deadline = tools();
    of_deadline["budget"] = json!({"max_seconds": 8});
    let written = calls(&[("shell", json!({"command": "until [ -e count ]; do sleep 0.01; done"}))]);
    for (number, (last, definition, status)) in [
        (act("read"), tools(), "completed"),
        (calls(&[write("a", "b")]), of_wait, "waiting"),
        (act("wait"), of_deadline, "stopped"),
    ]
    .into_iter()
    .enumerate()
    {
        let busy = Busy::new(number as u128);
        let script = [job(&busy.command), written.clone(), last];
        put_scripted(&app, "busy", &script, definition).await;
        let run = app.run_with(json!({"agent": "busy", "input": "go"})).await;
        assert_eq!(run["status"], status, "{run:#}");
        assert_eq!(busy.processes(), 0, "{status}");
        let session = &run["session_id"];
        assert_valid(&app, session).await;
        let count = file(&app, session, "count").await;
        // The last number that was written is a whole one, unless it was killed while writing.
        assert!(
            count.is_empty() || count.trim().parse::<u64>().unwrap() > 0,
            "{count:?}"
        );
        // The files are those that a directory gets anew elsewhere.
        if status != "waiting" {
            let listed = elsewhere
                .run_with(json!({"agent": "lister", "input": "go", "base_session_id": session}))
                .await;
            assert_eq!(tree(&app, &listed["session_id"]).await, tree(&app, session).await);
            let oracle = tempfile::tempdir().unwrap();
            for path in files(&app, session).await {
                let content = file(&app, session, &path).await;
                let path = oracle.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            assert_eq!(results(&app, &listed).await[0], plain_shell(oracle.path(), LIST));
        }
    }
    elsewhere.finish().await;
    app.finish().await;
}

async fn jobs_of_a_subagent_end_with_it(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let (fork, shared) = (Busy::new(7), Busy::new(8));
    put_scripted(&app, "fork", &[job(&fork.command)], tools()).await;
    put_scripted(&app, "shared", &[job(&shared.command)], tools()).await;
    let ask = |name: &str| calls(&[(name, json!({"task": "go"}))]);
    let list = calls(&[("shell", json!({"command": "ls"}))]);
    let steps = [ask("fork"), list, ask("shared"), act("read"), act("stop")];
    let mut definition = tools();
    definition["subagents"] = json!([{"agent": "fork"}, {"agent": "shared", "workspace": "shared"}]);
    put_scripted(&app, "lead", &steps, definition).await;
    let run = app.run_with(json!({"agent": "lead", "input": "go"})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let read = results(&app, &run).await;
    // The fork's job has ended with it, and its files are merged.
    assert_eq!(read[1], "count\nlog\n", "{read:#?}");
    // A job in shared files goes on after the subagent.
    assert!(read[3].contains("[job-1 has been running for "), "{read:#?}");
    assert!(read[4].contains(": stopped]"), "{read:#?}");
    assert_eq!((fork.processes(), shared.processes()), (0, 0));
    assert_valid(&app, &run["session_id"]).await;
    app.finish().await;
}

/// The job makes them while the model writes its answer. No later call could say so.
async fn a_run_keeps_its_answer_and_files_if_its_jobs_leave_too_many(database: TestDatabase) {
    let seconds = Busy::new(9).seconds;
    let command =
        format!("until [ -e go ]; do sleep 0.1; done; for i in $(seq 100); do echo > f$i; done; exec sleep {seconds}");
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |request| match tool_results(request).len() {
        0 => Reply::call("1", "shell", &json!({"command": command, "background": true})),
        1 => Reply::call("2", "write_file", &json!({"path": "go", "content": "now"})),
        _ => Reply::Held(Arc::clone(&behind), "the answer".to_owned()),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[("workspace.max_files", "50")]).await;
    let mut definition = tools();
    definition["model"] = json!("mock/m");
    app.put_agent("flooding", definition).await;
    let job = Busy {
        command: String::new(),
        seconds,
    };
    let running = app.run_with(json!({"agent": "flooding", "input": "go"}));
    let (run, ()) = tokio::join!(running, async {
        gate.until_waiting(1).await;
        until("the job has not made its files", async || job.processes() == 1).await;
        gate.open(1);
    });
    assert_members!(run, {"status": "completed", "error": null, "output_text": "the answer"});
    assert_eq!(job.processes(), 0);
    assert_eq!(files(&app, &run["session_id"]).await, ["go"]);
    assert_eq!(file(&app, &run["session_id"], "go").await, "now");
    assert_valid(&app, &run["session_id"]).await;
    app.finish().await;
}
