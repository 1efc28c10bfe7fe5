//! `run` in this process and at a service: its exit codes, approvals on a terminal, broken streams
//! and signals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use test_support::raw_server::{RawReply, RawServer};
use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};

use super::binary::Home;
use super::remote_commands::{client, make_key};
use super::service::Service;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply};
use crate::support::text::{assert_contains, assert_lacks};

const RUN: &str = "01890000-0000-7000-8000-000000000000";

/// An agent that asks before it writes two files at once.
const WRITER: &str = r#"
driver = "scripted"
model = "demo/demo"
tools = ["write_file"]
script = [
    {tool_calls = [
        {name = "write_file", arguments = {path = "a.md", content = "1"}},
        {name = "write_file", arguments = {path = "b.md", content = "2"}},
    ]},
    {text = "That was all."},
]
approvals = [{tools = ["write_file"], approval = "always"}]
"#;

/// An agent that asks again after each answer.
const ASKER: &str = r#"
driver = "scripted"
model = "demo/demo"
tools = ["write_file"]
script = [
    {tool_calls = [{name = "write_file", arguments = {path = "a.md", content = "1"}}]},
    {tool_calls = [{name = "write_file", arguments = {path = "b.md", content = "2"}}]},
    {text = "It does not come to this."},
]
approvals = [{tools = ["write_file"], approval = "always"}]
"#;

/// An agent with a tool that its caller executes.
const CHOOSER: &str = r#"
driver = "scripted"
model = "demo/demo"
script = [{tool_calls = [{name = "choose", arguments = {}}]}, {text = "Done."}]
client_tools = [{name = "choose", description = "Chooses."}]
"#;

/// An agent that spends its budget.
const STOPPED: &str = r#"
driver = "scripted"
model = "demo/demo"
tools = ["calculator"]
script = [{tool_calls = [{name = "calculator", arguments = {expression = "1 + 1"}}]}, {text = "Done."}]
budget = {max_steps = 1}
"#;

/// A service, its machine, and a machine that calls it.
struct Machines {
    home: Home,
    client: Home,
    service: Service,
}

impl Machines {
    async fn start(mock: &MockModel) -> Self {
        let home = Home::with_file().with_mock(mock);
        let agents = [
            ("asker", ASKER),
            ("writer", WRITER),
            ("chooser", CHOOSER),
            ("stopped", STOPPED),
        ];
        for (name, definition) in agents {
            home.write(&format!("config/agents/{name}.toml"), definition);
        }
        let key = make_key(&home, "default", "runs:write,sessions:read").await;
        let service = Service::start(&home).await.with_key(&key);
        let client = client(&format!("http://{}", service.address), &key);
        Self { home, client, service }
    }

    async fn newest_run(&self) -> Value {
        self.service.get("/v1/runs?limit=1").await["data"][0].clone()
    }
}

async fn silent_model() -> MockModel {
    MockModel::start(|_| Reply::Status(401, r#"{"error": {"message": "bad key"}}"#.to_owned())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_name_the_end_of_a_run() {
    let machines = Machines::start(&silent_model().await).await;
    for home in [&machines.home, &machines.client] {
        for (arguments, code, part) in [
            (&["run", "What is 1 + 1?"][..], 0, "status completed"),
            (&["run", "hi", "--agent", "echo"], 1, "status failed"),
            (&["run", "hi", "--agent", "nobody"], 1, "nobody"),
            (&["run"], 2, "<TEXT>"),
            (&["run", "hi", "--base", "x"], 2, "--base"),
            (
                &["run", "hi", "--agent", "asker"],
                3,
                "[write_file {\"content\":\"1\",\"path\":\"a.md\"} waits",
            ),
            (
                &["run", "hi", "--agent", "asker", "--json"],
                3,
                "/answers, or deny the open calls with --deny-open",
            ),
            (
                &["run", "hi", "--agent", "chooser", "--thread", "t"],
                3,
                "[choose {} waits for an answer",
            ),
            (&["run", "hi", "--thread", "t"], 1, "has an open call"),
            (
                &["run", "hi", "--thread", "t", "--deny-open"],
                0,
                "continue with --thread t",
            ),
            (&["run", "hi", "--agent", "stopped"], 4, "stopped: "),
        ] {
            let ended = home.run(arguments).await;
            assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
            assert_contains!(ended.stderr, part; "{arguments:?}");
        }
    }
    // Both print the same.
    let printed = async |home: &Home| home.run(&["run", "What is 17 * 23?"]).await.stdout;
    assert_eq!(printed(&machines.client).await, printed(&machines.home).await);
    let ended = machines.client.run(&["run", "What is 2 + 2?", "--json"]).await;
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    let run_id = shown["run_id"].as_str().unwrap();
    assert_eq!(machines.home.succeed(&["runs", "show", run_id]).await, ended.stdout);
    machines.service.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvals_are_asked_for_on_a_terminal() {
    let machines = Machines::start(&silent_model().await).await;
    for (place, home) in [("here", &machines.home), ("there", &machines.client)] {
        for (number, (agent, typed, code, part, files)) in [
            ("writer", "y\\nyes\\n", 0, "That was all.", &["a.md", "b.md"][..]),
            ("writer", "\\nn\\nnot on Fridays\\n", 0, "That was all.", &[]),
            ("writer", "y\\n", 3, "waits for an answer", &[]),
            ("asker", "y\\ny\\n", 3, "waits for an answer", &["a.md", "b.md"]),
        ]
        .into_iter()
        .enumerate()
        {
            // Half of the runs are on a thread. `script` ends the input after its last line.
            let thread = [String::new(), format!("--thread {place}-{number}")][number % 2].clone();
            let line =
                format!("printf '{typed}' | script -qefc 'agent-runtime run hi --agent {agent} {thread}' /dev/null");
            let ended = home.start_shell(&line).end().await;
            assert_eq!(ended.code, Some(code), "{typed}: {}{}", ended.stdout, ended.stderr);
            assert_contains!(ended.stdout, part, "write_file wants to run with", "approve? y, n"; "{typed}");
            let run = machines.newest_run().await;
            let session = run["session_id"].as_str().unwrap();
            let found = machines.home.succeed(&["sessions", "files", session, "--json"]).await;
            let found: Value = serde_json::from_str(&found).unwrap();
            assert_eq!(column(&found, "path"), *files, "{typed}");
            let shown = machines.home.succeed(&["sessions", "show", session]).await;
            assert_eq!(shown.contains("not on Fridays"), typed.contains("Fridays"), "{shown}");
        }
    }
    // A person can't execute a client tool, and a program reads JSON.
    for arguments in ["--agent chooser", "--agent asker --json"] {
        let line = format!("script -qefc 'agent-runtime run hi {arguments}' /dev/null");
        let ended = machines.client.start_shell(&line).end().await;
        assert_eq!(ended.code, Some(3), "{}", ended.stdout);
        assert_lacks!(ended.stdout, "approve?");
    }
    machines.service.stop().await;
}

/// Starts a proxy that cuts its first connections after so many bytes of a response.
async fn cutting_proxy(server: String, mut cuts: usize, after: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(&server).await.unwrap();
            let limit = if cuts > 0 { after as u64 } else { u64::MAX };
            cuts = cuts.saturating_sub(1);
            tokio::spawn(async move {
                let (mut client_reads, mut client_writes) = client.into_split();
                let (server_reads, mut server_writes) = server.into_split();
                let mut server_reads = server_reads.take(limit);
                tokio::select! {
                    _ = copy(&mut client_reads, &mut server_writes) => (),
                    _ = copy(&mut server_reads, &mut client_writes) => (),
                }
                let _ = client_writes.shutdown().await;
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_goes_on() {
    let words: Vec<String> = (0..40).map(|number| format!("w{number} ")).collect();
    let expected = words.concat();
    let mock = MockModel::start(move |_| Reply::Slow(words.clone(), Duration::from_millis(20))).await;
    let machines = Machines::start(&mock).await;
    for (cuts, after) in [(1, 3_000), (3, 4_000)] {
        let url = cutting_proxy(machines.service.address.clone(), cuts, after).await;
        let run = ["run", "hi", "--agent", "echo", "--url", &url];
        let ended = machines.client.run(&run).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stdout.trim_end(), expected.trim_end());
        assert_contains!(ended.stderr, "the stream of the run broke: connecting again");
    }
    machines.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_service_is_gone_can_not_be_followed() {
    let stream = [("content-type", "text/event-stream")];
    let started = format!(
        "data: {}\n\n",
        json!({"sequence": 1, "run_id": RUN, "type": "run.started", "data": {}})
    );
    let gone = r#"{"title": "The run does not exist", "status": 404, "detail": "gone", "code": "run_not_found"}"#;
    for (first, part) in [
        (RawReply::new(200, &stream, &started), "gone (run_not_found)"),
        (RawReply::new(200, &stream, ""), "its id is not known"),
        (RawReply::new(200, &stream, "data: {]\n\n"), "can't be read"),
        (RawReply::text("hello"), "no JSON"),
    ] {
        let server = RawServer::start(move |request| match request.line() {
            "POST /v1/runs" => first.clone(),
            _ => RawReply::new(404, &[("content-type", "application/problem+json")], gone),
        })
        .await;
        let ended = client(&server.url(""), "ark_1").run(&["run", "hi"]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert_contains!(ended.stderr, part);
    }
}

/// Writes events of a run as a stream.
fn stream(events: &[(u64, &str, Value)]) -> RawReply {
    let lines = events.iter().map(|(sequence, kind, data)| {
        // The event about the reader has no number.
        let sequence = (*sequence > 0).then_some(sequence);
        let event = json!({"sequence": sequence, "run_id": RUN, "type": kind, "data": data});
        format!("event: {kind}\ndata: {event}\n\n")
    });
    RawReply::new(200, &[("content-type", "text/event-stream")], lines.collect::<String>())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_reader_comes_back() {
    let ended = json!({"run_id": RUN, "session_id": null, "status": "completed", "output_text": "ab"});
    let busy = json!({"title": "Busy", "status": 503, "detail": "soon", "code": "store_unavailable"});
    let begun = stream(&[
        (1, "run.started", json!({})),
        (2, "message.delta", json!({"text": "a"})),
        (
            0,
            "stream.dropped",
            json!({"reason": "the store can't be read now", "after": 2}),
        ),
    ]);
    let rest = stream(&[
        (3, "message.delta", json!({"text": "b"})),
        (4, "run.completed", ended.clone()),
    ]);
    let nothing_more = RawReply::bytes("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    for (again, printed) in [(rest, "ab\n"), (nothing_more, "a\n")] {
        let (begun, ended, busy) = (begun.clone(), ended.to_string(), busy.to_string());
        let tries = AtomicUsize::new(0);
        let server = RawServer::start(move |request| match request.line() {
            "POST /v1/runs" => begun.clone(),
            line if line.ends_with("/events") => {
                assert_eq!(request.header("last-event-id"), Some("2"));
                match tries.fetch_add(1, Ordering::Relaxed) {
                    0 => RawReply::new(503, &[("content-type", "application/problem+json")], &busy),
                    _ => again.clone(),
                }
            }
            _ => RawReply::new(200, &[("content-type", "application/json")], &ended),
        })
        .await;
        let run = client(&server.url(""), "ark_1").run(&["run", "hi"]).await;
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(run.stdout, printed, "{}", run.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_stops_a_run_at_its_service() {
    let mock = MockModel::start(|_| Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20))).await;
    let machines = Machines::start(&mock).await;
    for (signal, code, arguments) in [
        ("INT", 130, &["--agent", "echo"][..]),
        ("TERM", 143, &["--agent", "echo", "--thread", "term"]),
        ("INT", 130, &["--agent", "echo", "--json"]),
    ] {
        let asked = mock.asked();
        let mut process = machines.client.start(&[&["run", "hi"], arguments].concat());
        until("the run does not begin", async || {
            assert!(process.status().is_none(), "{}", process.stderr());
            mock.asked() > asked && machines.newest_run().await["status"] == "running"
        })
        .await;
        if !arguments.contains(&"--json") {
            until("nothing is printed", async || process.stdout().len() > 10).await;
        }
        process.signal(signal);
        let ended = process.end().await;
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let run = machines.newest_run().await;
        assert_members!(run, {"status": "stopped", "stop_reason": "user_requested"});
        let run_id = run["run_id"].as_str().unwrap();
        assert_contains!(
            ended.stderr,
            &format!("run {run_id}  status stopped"),
            &format!("error: ended by SIG{signal}")
        );
        if arguments.contains(&"--json") {
            let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_members!(printed, {"run_id": run_id, "status": "stopped"});
        }
    }
    let line = "{ agent-runtime run hi --agent echo; echo $? >code; } | head -c 5";
    let ended = machines.client.start_shell(line).end().await;
    assert_eq!(ended.stdout, "on on");
    let code = std::fs::read_to_string(machines.client.path().join("code")).unwrap();
    assert_eq!(code, "141\n", "{}", ended.stderr);
    assert_eq!(machines.newest_run().await["status"], "stopped");
    machines.service.stop().await;
}
