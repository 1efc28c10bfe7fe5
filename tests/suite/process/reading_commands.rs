//! The commands that show runs, threads and agents, for people and as JSON.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::binary::{Ended, Home};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::text::assert_contains;

on_every_store!(
    runs_are_listed_and_shown,
    a_thread_is_continued_with_and_without_a_service,
    agents_of_files_and_of_the_store_are_listed_and_shown,
    an_id_of_the_wrong_kind_is_named,
    json_equals_that_of_the_api
);

/// Parses what a command printed.
async fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let printed = home.succeed(arguments).await;
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// Returns the first words of the lines below the heading.
async fn first_words(home: &Home, arguments: &[&str]) -> Vec<String> {
    let printed = home.succeed(arguments).await;
    let lines = printed.lines().skip(1);
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn runs_are_listed_and_shown(database: TestDatabase) {
    let home = Home::new(database.url());
    let first = json_of(&home, &["run", "What is 1 + 1?", "--json"]).await;
    assert_members!(first, {"status": "completed", "agent": "demo", "mode": "stream"});
    assert!(text(&first["output_text"]).contains("1 + 1 = 2"), "{first:#}");
    let second = json_of(&home, &["run", "What is 2 + 2?", "--thread", "ada", "--json"]).await;
    assert_eq!(second["thread"], "ada");
    let (first_id, second_id) = (text(&first["run_id"]), text(&second["run_id"]));

    for arguments in [&["runs", "show", first_id][..], &["runs", "show", first_id, "--json"]] {
        assert_eq!(json_of(&home, arguments).await, first);
    }
    assert_eq!(first_words(&home, &["runs", "list"]).await, [second_id, first_id]);
    for (arguments, expected) in [
        (&["--thread", "ada"][..], &[second_id][..]),
        (&["--limit", "1"], &[second_id]),
        (&["--status", "failed"], &[]),
        (&["--agent", "demo", "--model", "demo/demo"], &[second_id, first_id]),
        (&["--agent", "nobody"], &[]),
    ] {
        let list = [&["runs", "list"], arguments].concat();
        assert_eq!(first_words(&home, &list).await, expected, "{arguments:?}");
        let listed = json_of(&home, &[&list[..], &["--json"]].concat()).await;
        assert_eq!(column(&listed, "run_id"), expected, "{arguments:?}");
    }
    let keys = json_of(&home, &["keys", "list", "--json"]).await;
    assert_eq!(keys, json!([]));
    let figures = json_of(&home, &["gc", "--dry-run", "--json"]).await;
    assert_members!(figures, {"sessions": 0, "idempotency_keys": 0});
    home.succeed(&["keys", "create", "--tenant", "acme", "--label", "gateway"])
        .await;
    let keys = json_of(&home, &["keys", "list", "--json"]).await;
    assert_members!(keys[0], {"tenant": "acme", "label": "gateway"});
    let complaint = home
        .fail(&["runs", "show", "01890000-0000-7000-8000-000000000000"])
        .await;
    assert!(complaint.contains("the store has no run 01890000"), "{complaint}");
    let complaint = home.fail(&["runs", "list", "--status", "done"]).await;
    assert!(complaint.contains("done"), "{complaint}");
}

async fn a_thread_is_continued_with_and_without_a_service(database: TestDatabase) {
    let home = Home::new(database.url());
    let run = async |words: &str| -> Ended { home.run(&["run", words, "--thread", "ada"]).await };
    let first = run("What is 1 + 1?").await;
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.contains("1 message(s)"), "{}", first.stdout);
    assert!(first.stderr.contains("continue with --thread ada"), "{}", first.stderr);
    let service = Service::start(&home).await;
    assert_contains!(run("What is 2 + 2?").await.stdout, "2 message(s)");
    service.stop().await;
    assert_contains!(run("What is 3 + 3?").await.stdout, "3 message(s)");

    let shown = json_of(&home, &["threads", "show", "ada"]).await;
    assert_members!(shown, {"name": "ada", "version": 3});
    assert_eq!(json_of(&home, &["threads", "show", "ada", "--json"]).await, shown);
    assert_eq!(json_of(&home, &["threads", "list", "--json"]).await, json!([shown]));
    assert_eq!(first_words(&home, &["threads", "list"]).await, ["ada"]);
    let complaint = home.fail(&["threads", "show", "eve"]).await;
    assert!(complaint.contains("there is no thread named \"eve\""), "{complaint}");
    let both = ["run", "hi", "--thread", "ada", "--base", text(&shown["session_id"])];
    let complaint = home.fail(&both).await;
    assert!(complaint.contains("cannot be used with"), "{complaint}");
}

async fn agents_of_files_and_of_the_store_are_listed_and_shown(database: TestDatabase) {
    let home = Home::new(database.url());
    home.write(
        "config/agents/writer.toml",
        "model = 'demo/demo'\ndescription = 'Writes.'",
    );
    let service = Service::start(&home).await;
    service.put_agent("counter", json!({"model": "demo/demo"})).await;
    service.stop().await;
    let names = first_words(&home, &["agents", "list"]).await;
    assert_eq!(names, ["counter", "demo", "writer"]);
    let table = home.succeed(&["agents", "list"]).await;
    let from: Vec<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(from, ["store", "file", "file"]);
    let listed = json_of(&home, &["agents", "list", "--json"]).await;
    let shown = json_of(&home, &["agents", "show", "writer"]).await;
    home.succeed(&["agents", "show", "writer", "--json"]).await;
    assert_members!(shown, {"name": "writer", "description": "Writes."});
    assert_members!(shown, {"version": listed[2]["version"], "tools": listed[2]["tools"]});
    for (name, expected) in [("nobody", "\n"), ("writr", ", did you mean \"writer\"?\n")] {
        let complaint = home.fail(&["agents", "show", name]).await;
        let expected = format!("there is no agent named {name:?}{expected}");
        assert!(complaint.ends_with(&expected), "{complaint}");
    }
}

async fn an_id_of_the_wrong_kind_is_named(database: TestDatabase) {
    let home = Home::new(database.url());
    let run = json_of(&home, &["run", "What is 1 + 1?", "--json"]).await;
    let [run_id, session_id] = ["run_id", "session_id"].map(|name| run[name].as_str().unwrap());
    let no_session = format!("there is no session {run_id}: it is the id of a run, whose session is {session_id}\n");
    let no_run = format!("there is no run {session_id}: it is the id of a session, which the run {run_id} has made\n");
    for (arguments, expected) in [
        (&["sessions", "show", run_id][..], &no_session),
        (&["sessions", "tree", run_id], &no_session),
        (&["run", "hi", "--base", run_id], &no_session),
        (&["runs", "show", session_id], &no_run),
    ] {
        let complaint = home.fail(arguments).await;
        assert!(complaint.ends_with(expected), "{arguments:?}: {complaint}");
    }
}

async fn json_equals_that_of_the_api(database: TestDatabase) {
    let home = Home::new(database.url());
    let service = Service::start(&home).await;
    let counter = json!({"model": "demo/demo", "budget": {"max_steps": 3}});
    service.put_agent("counter", counter).await;
    let first = json_of(&home, &["run", "What is 1 + 1?", "--thread", "ada", "--json"]).await;
    let second = json_of(&home, &["run", "What is 2 + 2?", "--thread", "ada", "--json"]).await;
    let [first, second] = [&first, &second].map(|run| (text(&run["run_id"]), text(&run["session_id"])));
    for (arguments, path) in [
        (&["runs", "list", "--json"][..], "/v1/runs".to_owned()),
        (&["runs", "show", first.0], format!("/v1/runs/{}", first.0)),
        (&["sessions", "list", "--json"], "/v1/sessions".to_owned()),
        (
            &["sessions", "list", "--json", "--thread", "ada", "--tips"],
            "/v1/sessions?thread=ada&tips=true".to_owned(),
        ),
        (
            &["sessions", "list", "--json", "--agent", "counter"],
            "/v1/sessions?agent=counter".to_owned(),
        ),
        (&["sessions", "show", first.1], format!("/v1/sessions/{}", first.1)),
        (
            &["sessions", "diff", first.1, second.1],
            format!("/v1/sessions/{}/diff/{}", first.1, second.1),
        ),
        (&["threads", "list", "--json"], "/v1/threads".to_owned()),
        (&["threads", "show", "ada"], "/v1/threads/ada".to_owned()),
        (&["agents", "show", "counter"], "/v1/agents/counter".to_owned()),
    ] {
        let printed = without_spaces(&home.succeed(arguments).await);
        let served = service.request(reqwest::Method::GET, &path).send().await.unwrap();
        let served = without_spaces(&served.text().await.unwrap());
        let expected = if printed.starts_with('[') {
            format!(r#"{{"data":{printed},"next_cursor":null}}"#)
        } else {
            printed
        };
        assert_eq!(expected, served, "{arguments:?}");
    }
    assert_eq!(first_words(&home, &["sessions", "list"]).await, [second.1, first.1]);
    let last = first_words(&home, &["sessions", "list", "--limit", "1"]).await;
    assert_eq!(last, [second.1]);
    service.stop().await;
}

/// Leaves what distinguishes JSON that is laid out for people from other JSON.
fn without_spaces(json: &str) -> String {
    json.split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_faulty_file_hides_no_other_agent() {
    let home = Home::with_file();
    home.write("config/agents/a.toml", "model = 7");
    home.write("config/agents/b.toml", "model = 'nobody/m'");
    home.write("config/agents/writer.toml", "model = 'demo/demo'");
    home.succeed(&["migrate"]).await;
    for (more, expected) in [(&[][..], "writer  file"), (&["--json"], "\"name\": \"writer\"")] {
        let listed = home.run(&[&["agents", "list"], more].concat()).await;
        assert_eq!(listed.code, Some(1), "{}", listed.stderr);
        assert!(listed.stdout.contains(expected), "{}", listed.stdout);
        for part in [
            "error: config/agents/a.toml: line 1: `model`: invalid type",
            "error: config/agents/b.toml: the agent \"b\" can't work: no provider",
            "error: not all files of agents can be used",
        ] {
            assert!(listed.stderr.contains(part), "no {part:?} in {}", listed.stderr);
        }
    }
    home.succeed(&["agents", "show", "writer"]).await;
    let complaint = home.fail(&["agents", "show", "b"]).await;
    assert!(complaint.contains("config/agents/b.toml"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_of_a_run_may_come_from_standard_input() {
    let home = Home::with_file();
    let ended = home
        .start_shell("echo 'What is 17 * 23?' | agent-runtime run - --json")
        .end()
        .await;
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(
        text(&result["output_text"]).ends_with("the first was: What is 17 * 23?"),
        "{result:#}"
    );
    // Standard input is empty here.
    let complaint = home.fail(&["run", "-"]).await;
    assert!(complaint.contains("standard input is empty"), "{complaint}");
}
