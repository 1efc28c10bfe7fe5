//! The whole run: admission, loop with the scripted model, commit to SQLite. No HTTP.

use std::fs;

use agent::definition::AgentDefinition;
use agent::record::{RunMode, RunStatus};
use agent_runtime::app::{App, Extensions};
use agent_runtime::config::{self, Sources};
use agent_runtime::run::files::{ChangeRequest, ChangeTarget, FileChange, FileSource, change_files};
use agent_runtime::run::{InputMessage, OnDisconnect, RunRequest, start};
use criterion::Criterion;
use serde_json::json;
use store::sessions::ConflictPolicy;
use test_support::drafts::requester;
use tokio::runtime::Runtime;
use values::ids::SessionId;
use values::message::ContentPart;
use values::tenant::TenantId;
use workspace::FilePath;

const SCRIPT: &str = r#"
[[turn]]
when = "sum"
step = 0
tool_calls = [{ name = "calculator", arguments = { expression = "19 * 23" } }]

[[turn]]
text = "The one along the river is shorter, and after an hour it passes a village with two inns."
chunk_chars = 6
"#;

const FILES: usize = 10_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    // /var/tmp is on a disk, so that a sync means something.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let app = runtime.block_on(app(&folder));
    let mut group = criterion.benchmark_group("run");
    for (name, words) in [
        ("one step", "Which route is shorter?"),
        ("a tool call and two steps", "What is the sum?"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.to_async(&runtime).iter(|| run(&app, None, words));
        });
    }
    // The files are part of the session, and the run touches none of them.
    let plain = runtime.block_on(run(&app, None, "Which route is shorter?"));
    let with_files = runtime.block_on(add_files(&app, plain));
    for (name, base) in [
        ("one step more", plain),
        ("one step more beside 10000 files", with_files),
    ] {
        group.bench_function(name, |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| run(&app, Some(base), "Which route is shorter?"));
        });
    }
    group.finish();
}

async fn app(folder: &tempfile::TempDir) -> App {
    let script = folder.path().join("script.toml");
    fs::write(&script, SCRIPT).unwrap();
    let store = format!("sqlite://{}", folder.path().join("bench.db").display());
    let settings = [
        ("store.url", store),
        ("agents.directory", "/nonexistent".to_owned()),
        ("providers.bench.kind", "scripted".to_owned()),
        ("providers.bench.script", script.display().to_string()),
    ];
    let overrides = settings
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let config = config::load(&Sources {
        overrides,
        ..Sources::default()
    })
    .unwrap()
    .config;
    let app = App::build(&config, Extensions::default()).await.unwrap();
    let definition = json!({"name": "bench", "model": "bench/script", "tools": ["calculator"]});
    let definition: AgentDefinition = serde_json::from_value(definition).unwrap();
    app.runs
        .agents
        .put(&TenantId::anonymous(), definition, &requester())
        .await
        .unwrap();
    app
}

/// Returns a session with many files that continues another one.
async fn add_files(app: &App, session_id: SessionId) -> SessionId {
    let changes = (0..FILES).map(|number| FileChange::Put {
        path: FilePath::parse(&format!("d{}/f{number}", number % 100)).unwrap(),
        source: FileSource::Bytes(format!("{number}").into()),
        is_executable: None,
    });
    let request = ChangeRequest {
        target: ChangeTarget::Session(session_id),
        changes: changes.collect(),
        conflict: ConflictPolicy::Fork,
        idempotency: None,
    };
    let child = change_files(&app.runs, &TenantId::anonymous(), request).await.unwrap();
    child.bundle.head.session_id
}

/// Runs the agent, and returns the session that it has made.
async fn run(app: &App, base_session_id: Option<SessionId>, words: &str) -> SessionId {
    let request = RunRequest {
        base_session_id,
        agent: Some("bench".to_owned()),
        input: vec![InputMessage::of_user(vec![ContentPart::text(words)])],
        on_disconnect: OnDisconnect::Continue,
        ..RunRequest::new(RunMode::Sync)
    };
    let handle = start(&app.runs, TenantId::anonymous(), request).await.unwrap();
    let record = handle.result().await.unwrap();
    assert_eq!(
        record.summary.status,
        RunStatus::Completed,
        "{:?}",
        record.summary.error
    );
    record.summary.session_id
}
