//! The example of a coding agent, with exactly its files: the service that its script starts, its
//! client, and a person at the terminal. Only the model is played, over its real protocol.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::binary::Home;
use super::service::Service;
use crate::support::members::column;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::session_path;

/// How long the client may take.
const CLIENT_LIMIT: Duration = Duration::from_mins(2);
/// The command that needs no approval.
const TESTS: &str = "python3 -m unittest";
/// How the agent commits.
const COMMIT: &str = "git -c user.name=coder -c user.email=coder@example.org commit --quiet --all --message";

/// The input of the user at the client: an approval of each of the three commands.
const APPROVALS: &str = "printf '\\n\\n\\n'";

/// Plays the model: each task of the client has its steps.
fn model(request: &Value) -> Reply {
    let task = last_user_text(request);
    let messages = request["messages"].as_array().unwrap().iter().rev();
    let since = messages.take_while(|message| message["role"] != "user");
    let step = since.filter(|message| message["role"] == "assistant").count();
    let steps = match task.split(' ').next().unwrap() {
        "Clone" => clone_and_mend(&task),
        "Separate" => separate(),
        "Refuse" => refuse(),
        "The" => vec![
            vec![shell(TESTS)],
            vec![shell(&format!("{COMMIT} 'Show thousands, refuse negative rates'"))],
        ],
        _ => panic!("no such task: {task}"),
    };
    let Some(calls) = steps.get(step) else {
        return Reply::text(&format!("Done after {step} steps."));
    };
    let calls = calls.iter().enumerate().map(|(at, (tool, arguments))| {
        let id = format!("{}-{step}-{at}", &task[..3]);
        (id, (*tool).to_owned(), arguments.to_string())
    });
    Reply::ToolCalls(calls.collect())
}

type Call = (&'static str, Value);

fn shell(command: &str) -> Call {
    ("shell", json!({"command": command}))
}

fn read(path: &str) -> Call {
    ("read_file", json!({"path": path}))
}

fn edit(path: &str, old: &str, new: &str) -> Call {
    ("edit_file", json!({"path": path, "edits": [{"old": old, "new": new}]}))
}

fn clone_and_mend(task: &str) -> Vec<Vec<Call>> {
    let (_, rest) = task.split_once(": ").unwrap();
    let (clone, _) = rest.split_once('\n').unwrap();
    vec![
        vec![shell(clone)],
        vec![read("prices.py"), read("test_prices.py")],
        vec![shell(TESTS)],
        vec![edit("prices.py", "sum(prices[1:])", "sum(prices)")],
        vec![shell(TESTS)],
        vec![shell(&format!("{COMMIT} 'Add all prices up'"))],
    ]
}

fn separate() -> Vec<Vec<Call>> {
    vec![
        vec![
            edit("prices.py", "{price / 100:.2f}", "{price / 100:,.2f}"),
            edit("test_prices.py", "1234.50 EUR", "1,234.50 EUR"),
        ],
        vec![shell(TESTS)],
    ]
}

fn refuse() -> Vec<Vec<Call>> {
    let check = "    if rate < 0:\n        raise ValueError(\"the rate is negative\")\n    return round(";
    let test = "    def test_a_negative_rate_is_refused(self):\n        \
                with self.assertRaises(ValueError):\n            prices.with_tax(199, -0.19)\n\n";
    let before = "    def test_a_tax_is_rounded(self):\n";
    vec![
        vec![
            edit("prices.py", "    return round(", check),
            edit("test_prices.py", before, &format!("{test}{before}")),
        ],
        vec![shell(TESTS)],
    ]
}

/// The files of a session by their paths: the hashes of their contents.
async fn files(service: &Service, session_id: &str) -> BTreeMap<String, Value> {
    let path = format!("/v1/sessions/{session_id}/files?recursive=true&limit=200");
    let page = service.get(&path).await;
    assert_eq!(page["next_cursor"], Value::Null);
    let entries = page["data"].as_array().unwrap().iter();
    let files = entries.filter(|entry| entry["kind"] == "file");
    files
        .map(|entry| (entry["path"].as_str().unwrap().to_owned(), entry["hash"].clone()))
        .collect()
}

/// The paths whose files differ.
fn changed<'f>(left: &'f BTreeMap<String, Value>, right: &'f BTreeMap<String, Value>) -> Vec<&'f str> {
    let paths = left.keys().chain(right.keys().filter(|path| !left.contains_key(*path)));
    let mut paths: Vec<_> = paths.filter(|path| left.get(*path) != right.get(*path)).collect();
    paths.sort();
    paths.into_iter().map(String::as_str).collect()
}

/// The results of the calls in a session, in their order.
async fn results(service: &Service, session_id: &str) -> Vec<String> {
    let messages = service.get(&format!("/v1/sessions/{session_id}/messages")).await;
    let messages = messages["data"].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| message["content"].as_array().unwrap());
    let results = parts.filter(|part| part["type"] == "tool_result");
    results
        .map(|result| result["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_clones_edits_tests_asks_and_its_forks_are_merged() {
    let mock = MockModel::start(model).await;
    let home = Home::new("sqlite://data/store.db")
        .variable("OPENAI_API_KEY", "sk-test")
        .variable("OPENAI_BASE_URL", &mock.base_url());
    let commands = home.path().join("commands");
    let home = home.variable("AGENT_RUNTIME__SANDBOX__DIRECTORY", commands.to_str().unwrap());
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/coding-agent");
    let copied = home.start_shell(&format!("cp -r {example} . && rm -rf coding-agent/data"));
    assert_eq!(copied.end().await.code, Some(0));

    let service = Service::listening(home.start_shell("exec coding-agent/start.sh")).await;
    let client = format!(
        "{APPROVALS} | coding-agent/client.py --address http://{}",
        service.address
    );
    let client = home.start_shell(&client).end_within(CLIENT_LIMIT).await;
    assert_eq!(client.code, Some(0), "{}\n{}", client.stdout, client.stderr);

    let runs = service.get("/v1/runs").await;
    let mut runs = runs["data"].as_array().unwrap().clone();
    runs.reverse();
    let statuses: Vec<_> = runs.iter().map(|run| run["status"].as_str().unwrap()).collect();
    let waits = ["answered", "answered", "completed"];
    assert_eq!(
        statuses,
        [&waits[..], &["completed", "completed"], &waits[1..]].concat()
    );
    let session = |run: usize| runs[run]["session_id"].as_str().unwrap();
    let (empty, base, left, right, last) = (session(0), session(2), session(3), session(4), session(6));
    for run in &runs {
        assert_eq!(service.get(&session_path(run, "/verify")).await["valid"], true);
    }

    // Nothing ran before the person approved it.
    assert_eq!(files(&service, empty).await, BTreeMap::new());
    let before = results(&service, base).await;
    let [cloned, _, _, failed, _, passed, committed] = &before[..] else {
        panic!("{before:#?}")
    };
    assert_eq!((cloned.as_str(), committed.as_str()), ("(no output)", "(no output)"));
    assert!(failed.contains("AssertionError: 255 != 355"), "{failed}");
    assert!(passed.contains("Ran 3 tests") && passed.ends_with("OK\n"), "{passed}");

    // Each fork changed the two files and nothing else, and the merge has the changes of both.
    let merged = runs[5]["base_session_id"].as_str().unwrap();
    let of_base = files(&service, base).await;
    let (of_left, of_right) = (files(&service, left).await, files(&service, right).await);
    let both = ["prices.py", "test_prices.py"];
    assert_eq!(changed(&of_base, &of_left), both);
    assert_eq!(changed(&of_base, &of_right), both);
    let of_merged = files(&service, merged).await;
    for other in [&of_base, &of_left, &of_right] {
        assert_eq!(changed(other, &of_merged), both);
    }
    let after = results(&service, last).await;
    let passed = &after[after.len() - 2];
    assert!(passed.contains("Ran 4 tests") && passed.contains("\nOK\n"), "{passed}");

    // The person has seen the commands, the difference and the results.
    let repository = home.path().join("coding-agent/data/shop.git");
    for text in [
        &format!("wants to run: git clone --quiet {} .", repository.display()),
        &format!("wants to run: {COMMIT} 'Add all prices up'"),
        "-    return f\"{price / 100:,.2f} EUR\"",
        "+        raise ValueError(\"the rate is negative\")",
        "Done after 6 steps.",
    ] {
        assert!(client.stdout.contains(text), "{text}: {}", client.stdout);
    }

    // What the client leads to is a sound repository, of which the service is no part.
    let (_, address) = client.stdout.rsplit_once("The files: ").unwrap();
    let check = format!(
        "set -e; curl -sS -o files.zip '{}'; python3 -m zipfile -e files.zip result; cd result
         git -c safe.directory='*' fsck --strict 2>&1; git -c core.fileMode=false status --porcelain
         git log --format=%s; {TESTS} 2>&1",
        address.trim()
    );
    let checked = home.start_shell(&check).end().await;
    let expected = "Show thousands, refuse negative rates\nAdd all prices up\nAdd prices\n....\n";
    assert!(checked.stdout.starts_with(expected), "{checked:#?}");

    check_requests(&mock);
    service.stop().await;
}

/// Each fork was asked with the conversation of the base, and without the other fork.
fn check_requests(mock: &MockModel) {
    let requests = mock.requests();
    assert_eq!(requests.len(), 7 + 3 + 3 + 3);
    for request in &requests {
        let tools = column(&request["tools"], "function/name");
        assert_eq!(
            tools,
            ["read_file", "write_file", "edit_file", "list_files", "grep", "shell"]
        );
        let text = request["messages"].to_string();
        assert!(text.contains("Clone the repository"), "{text}");
        let other = match last_user_text(request).as_str() {
            task if task.starts_with("Separate") => "Refuse negative",
            task if task.starts_with("Refuse") => "Separate thousands",
            _ => continue,
        };
        assert!(!text.contains(other), "{text}");
    }
}
