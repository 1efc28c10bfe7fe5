//! Stores that earlier versions made: the present version migrates them, responds as the earlier
//! one did, and continues their sessions.

use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::binary::Home;
use super::service::Service;
use crate::support::databases::{Engine, TestDatabase};

const SETTINGS: &str = "
[runs]
shutdown_grace = '100ms'
[retention]
interval = '0s'
[providers.slow]
kind = 'scripted'
script = 'slow.toml'
[providers.plain]
kind = 'scripted'
script = 'plain.toml'
[providers.team]
kind = 'scripted'
script = 'team.toml'
";

/// The newest migrations of the earlier versions.
const VERSIONS: [&str; 2] = ["0003", "0014"];

/// A service on a copy of an earlier version's store.
struct Opened {
    service: Service,
    /// The responses of the earlier version, and the ids of what its store holds.
    left: Value,
    _home: Home,
    _database: TestDatabase,
}

async fn open(version: &str, engine: Engine, role: &str) -> Option<Opened> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(version);
    let (name, database) = match engine {
        Engine::Sqlite => ("sqlite", TestDatabase::sqlite()),
        Engine::Postgres => ("postgres", TestDatabase::empty(engine).await?),
    };
    if let Some(path) = database.url().strip_prefix("sqlite://") {
        fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let dump = fs::read_to_string(folder.join(format!("{name}.sql"))).unwrap();
    database.execute(&dump).await.unwrap();
    let left: Value = serde_json::from_slice(&fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap();

    let home = Home::new(database.url()).variable("AGENT_RUNTIME__QUEUE__ROLE", role);
    home.write("agent-runtime.toml", SETTINGS);
    for file in ["slow.toml", "plain.toml", "team.toml"] {
        home.write(file, &fs::read_to_string(folder.join("files").join(file)).unwrap());
    }
    for agent in ["demo", "researcher", "editor", "keeper"] {
        let file = format!("config/agents/{agent}.toml");
        home.write(&file, &fs::read_to_string(folder.join("files").join(&file)).unwrap());
    }
    let service = Service::start(&home).await.with_key(left["key"].as_str().unwrap());
    Some(Opened {
        service,
        left,
        _home: home,
        _database: database,
    })
}

/// Returns the first path where the present response lacks or changes a value of the earlier one.
/// Fields may have been added.
fn first_difference(earlier: &Value, present: &Value, at: &str) -> Option<String> {
    match (earlier, present) {
        (Value::Object(earlier), Value::Object(present)) => earlier.iter().find_map(|(name, value)| {
            let present = present.get(name).unwrap_or(&Value::Null);
            first_difference(value, present, &format!("{at}/{name}"))
        }),
        (Value::Array(earlier), Value::Array(present)) if earlier.len() == present.len() => {
            let pairs = earlier.iter().zip(present).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (earlier, present))| first_difference(earlier, present, &format!("{at}/{index}")))
        }
        _ => (earlier != present).then(|| format!("{at}: {earlier} is now {present}")),
    }
}

async fn responses_are_the_same(version: &str, engine: Engine) {
    // Without a worker no waiting run is executed: that would add sessions and move the thread.
    let Some(opened) = open(version, engine, "api").await else {
        return;
    };
    let unfinished: Vec<&Value> = opened.left["unfinished"].as_object().unwrap().values().collect();
    for (path, earlier) in opened.left["answers"].as_object().unwrap() {
        let mut present = opened.service.get(path).await;
        if path.starts_with("/v1/runs?") {
            // They were accepted after the responses of the earlier version.
            let runs = present["data"].as_array_mut().unwrap();
            let all = runs.len();
            runs.retain(|run| !unfinished.contains(&&run["run_id"]));
            assert_eq!(all - runs.len(), unfinished.len());
        }
        assert_eq!(first_difference(earlier, &present, path), None, "{version}");
    }
    opened.service.stop().await;
}

async fn sessions_are_continued(version: &str, engine: Engine) {
    let Some(opened) = open(version, engine, "all").await else {
        return;
    };
    for base in opened.left["continued"].as_object().unwrap().values() {
        let body = json!({"base_session_id": base, "input": "What is 6 * 7?"});
        let (_, run) = opened.service.call(Method::POST, "/v1/runs", Some(body)).await;
        assert_eq!(run["status"], "completed", "{run:#}");
        let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
        assert_eq!(opened.service.get(&session).await["parent_session_id"], *base);
        assert_eq!(opened.service.get(&format!("{session}/verify")).await["valid"], true);
    }
    opened.service.stop().await;
}

async fn accepted_runs_end(version: &str, engine: Engine) {
    let Some(opened) = open(version, engine, "all").await else {
        return;
    };
    for (which, status, text) in [
        ("waits", "completed", "9 * 9 = 81"),
        ("waits_for_its_thread", "completed", "8 * 8 = 64"),
        // The time of its budget ended while it waited; its first step is not repeated.
        ("left_after_a_step", "stopped", "42"),
    ] {
        let accepted = json!({"run_id": opened.left["unfinished"][which]});
        let run = opened.service.ended(&accepted).await;
        assert_eq!(run["status"], status, "{which}: {run:#}");
        let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
        let messages = opened.service.get(&format!("{session}/messages")).await;
        assert!(messages.to_string().contains(text), "{which}: {messages:#}");
        assert_eq!(opened.service.get(&format!("{session}/verify")).await["valid"], true);
        if which == "left_after_a_step" {
            let calls = messages.to_string().matches("tool_call\"").count();
            assert_eq!((calls, &run["attempts"]), (1, &json!(2)), "{messages:#}");
        }
    }
    opened.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_store_is_read_as_its_version_read_it() {
    for version in VERSIONS {
        responses_are_the_same(version, Engine::Sqlite).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_store_is_read_as_its_version_read_it() {
    for version in VERSIONS {
        responses_are_the_same(version, Engine::Postgres).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_sqlite_store_are_continued() {
    for version in VERSIONS {
        sessions_are_continued(version, Engine::Sqlite).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_postgres_store_are_continued() {
    for version in VERSIONS {
        sessions_are_continued(version, Engine::Postgres).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_runs_of_a_sqlite_store_end() {
    for version in VERSIONS {
        accepted_runs_end(version, Engine::Sqlite).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_runs_of_a_postgres_store_end() {
    for version in VERSIONS {
        accepted_runs_end(version, Engine::Postgres).await;
    }
}
