//! The command `run` when it is interrupted: by a signal, or since its output is closed.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use test_support::databases::TestDatabase;
use test_support::wait::{until, until_found};

use super::binary::{Home, Process};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

on_every_store!(
    a_signal_ends_a_run_with_what_it_has,
    a_signal_stops_a_run_that_waits_for_its_thread
);

/// Starts a model whose completions never end.
async fn endless_model() -> MockModel {
    MockModel::start(|_| Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20))).await
}

/// Waits until the process has printed so many bytes.
async fn until_printed(process: &mut Process, length: usize) {
    until("the process prints no more", async || {
        assert!(process.status().is_none(), "{}", process.stderr());
        process.stdout().len() >= length
    })
    .await;
}

/// Returns the only run that there is, which must be a stopped one.
async fn stopped_run(service: &Service) -> Value {
    let runs = service.get("/v1/runs").await;
    let [run] = &runs["data"].as_array().unwrap()[..] else {
        panic!("{runs:#}")
    };
    assert_eq!(run["status"], "stopped", "{run:#}");
    run.clone()
}

/// Returns the text of the last message of the session.
async fn last_text(service: &Service, run: &Value) -> String {
    let session = session_path(run, "");
    let session = service.get(&session).await;
    let messages = session["message_history_state"]["messages"].as_array().unwrap();
    messages.last().unwrap()["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn a_signal_ends_a_run_with_what_it_has(database: TestDatabase) {
    let mock = endless_model().await;
    for (signal, code, arguments) in [
        ("HUP", 129, &["--agent", "echo", "--thread", "hup"][..]),
        ("INT", 130, &["--agent", "echo"]),
        ("TERM", 143, &["--agent", "echo", "--thread", "term"]),
        ("TERM", 143, &["--agent", "echo", "--json"]),
    ] {
        let home = Home::new(database.url()).with_mock(&mock);
        let tenant = format!("{}-{}", signal.to_lowercase(), arguments.len());
        let of_tenant = ["--tenant", &tenant];
        let line = [&["run", "hi"], arguments, &of_tenant].concat().join(" ");
        // The tests themselves may run below nohup.
        let mut process = home.start_shell(&format!("exec env --default-signal=HUP agent-runtime {line}"));
        if arguments.contains(&"--json") {
            // It prints nothing before its end.
            until("the model is never asked", async || mock.asked() >= 4).await;
        } else {
            until_printed(&mut process, 30).await;
        }
        process.signal(signal);
        let ended = process.end().await;
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let said = ended.stderr.lines().collect::<Vec<_>>();
        assert!(
            matches!(said[..], [store, run, next, error] if store.starts_with("store ") && run.ends_with("status stopped")
                && next.starts_with("continue with --") && error == format!("error: ended by SIG{signal}")),
            "{said:?}"
        );
        let list = home
            .succeed(&[&["runs", "list", "--json"][..], &of_tenant].concat())
            .await;
        let runs: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(
            (&runs[0]["status"], runs.as_array().unwrap().len()),
            (&json!("stopped"), 1),
            "{runs:#}"
        );
        let session = runs[0]["session_id"].as_str().unwrap();
        let shown = home
            .succeed(&[&["sessions", "show", session][..], &of_tenant].concat())
            .await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        if arguments.contains(&"--json") {
            let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_members!(printed, {"run_id": runs[0]["run_id"], "status": runs[0]["status"]});
        } else {
            let messages = shown["message_history_state"]["messages"].as_array().unwrap();
            let published = messages.last().unwrap()["content"][0]["text"].as_str().unwrap();
            assert!(
                published.starts_with(ended.stdout.trim_end()),
                "{published} lacks {}",
                ended.stdout
            );
        }
        if arguments.contains(&"--thread") {
            // The thread is free at once, not only after the lease.
            let next = ["run", "What is 1 + 1?", "--agent", "demo"];
            home.succeed(&[&next[..], &arguments[2..], &of_tenant].concat()).await;
        }
    }
}

async fn a_signal_stops_a_run_that_waits_for_its_thread(database: TestDatabase) {
    let mock = endless_model().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let service = Service::start(&home).await;
    let first = json!({"agent": "echo", "input": "first", "thread": "ada", "mode": "async"});
    let first = service.post("/v1/runs", first).await;
    let complaint = home.fail(&["run", "hi", "--agent", "echo", "--thread", "ada"]).await;
    assert!(complaint.contains("if_busy"), "{complaint}");
    let complaint = home.fail(&["run", "hi", "--thread", "ada", "--if-busy", "wait"]).await;
    for value in ["reject", "queue", "interrupt", "fork"] {
        assert!(complaint.contains(value), "{complaint}");
    }
    let waiting = ["run", "hi", "--agent", "echo", "--thread", "ada", "--if-busy", "queue"];
    let mut process = home.start(&waiting);
    let second = until_found("no run is queued", async || {
        assert!(process.status().is_none(), "{}", process.stderr());
        let runs = service.get("/v1/runs?status=queued").await;
        runs["data"].get(0).cloned()
    });
    let second = second.await;
    process.signal("TERM");
    let ended = process.end().await;
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(ended.stderr.contains("status queued"), "{}", ended.stderr);
    service.control(&first, "stop").await;
    for run in [&first, &second] {
        assert_eq!(service.ended(run).await["status"], "stopped");
    }
    assert_eq!(last_text(&service, &second).await, "hi");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_a_run_that_is_being_accepted() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = endless_model().await;
    let home = Home::new(database.url()).with_mock(&mock);
    home.succeed(&["migrate"]).await;
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        // Accepting the run waits for the transaction that adds another one to its thread.
        let mut holder = PgConnection::connect(database.url()).await.unwrap();
        let rival = "begin; insert into run_queue (
                tenant, run_id, thread, turn, enqueued_at, priority, schema_version, encoding, request)
            values ('default', gen_random_uuid(), 'ada', 1, now(), 0, 1, 0, '')";
        sqlx::raw_sql(rival).execute(&mut holder).await.unwrap();
        let line = "exec env --default-signal=HUP agent-runtime run hi --agent echo --thread ada --json";
        let process = home.start_shell(line);
        until("the run is never being accepted", async || {
            let waiting = "select count(*) from pg_stat_activity
                where wait_event = 'transactionid' and datname = current_database()";
            database.number(waiting).await == 1
        })
        .await;
        process.signal(signal);
        sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
        let ended = process.end().await;
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let list = home.succeed(&["runs", "list", "--json"]).await;
        let runs: Value = serde_json::from_str(&list).unwrap();
        let run = &runs[0];
        let (run_id, status) = (run["run_id"].as_str().unwrap(), run["status"].as_str().unwrap());
        // The run may have been accepted just before the signal arrived. Then this process stops
        // it, or the next one.
        assert!(["cancelled", "stopped", "queued"].contains(&status), "{run:#}");
        assert_contains!(ended.stderr, &format!("run {run_id}  status {status}"));
        let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_members!(printed, {"run_id": run["run_id"], "status": run["status"]});
        // The thread is free.
        home.succeed(&["run", "hi", "--agent", "demo", "--thread", "ada"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_output_is_closed_is_stopped() {
    let mock = endless_model().await;
    for on_thread in ["", " --thread ada"] {
        let home = Home::with_file().with_mock(&mock);
        let line = format!("{{ agent-runtime run hi --agent echo{on_thread}; echo $? >code; }} | head -c 5");
        let ended = home.start_shell(&line).end().await;
        assert_eq!(ended.stdout, "on on");
        assert_eq!(
            fs::read_to_string(home.path().join("code")).unwrap(),
            "141\n",
            "{}",
            ended.stderr
        );
        assert_contains!(ended.stderr, "error: standard output is closed");
        let service = Service::start(&home).await;
        let run = stopped_run(&service).await;
        assert!(last_text(&service, &run).await.starts_with("on on"));
        service.stop().await;
    }
    let home = Home::with_file();
    let unread = home.start_unread(&["run", "What is 1 + 1?"]).end().await;
    assert_eq!(unread.code, Some(141), "{}", unread.stderr);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_below_nohup_outlives_its_terminal() {
    let mock = endless_model().await;
    let home = Home::with_file().with_mock(&mock);
    let mut process = home.start_shell("exec nohup agent-runtime run hi --agent echo");
    until_printed(&mut process, 30).await;
    process.signal("HUP");
    let said = process.stdout().len();
    until_printed(&mut process, said + 30).await;
    process.signal("TERM");
    assert_eq!(process.end().await.code, Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_light_run_in_progress_is_referred_to_its_service() {
    let mock = endless_model().await;
    let home = Home::with_file().with_mock(&mock);
    let service = Service::start(&home).await;
    let mut events = service.stream(json!({"input": "hi"})).await;
    let run = events.until("run.started").await;
    let run_id = run["run_id"].as_str().unwrap();
    let complaint = home.fail(&["runs", "show", run_id]).await;
    for part in ["has no run", "while it is at work", &format!("GET /v1/runs/{run_id}")] {
        assert!(complaint.contains(part), "no {part:?} in {complaint}");
    }
    service.control(&run, "stop").await;
    events.rest().await;
    assert_eq!(home.run(&["runs", "show", run_id]).await.code, Some(0));
    service.stop().await;
}
