//! The whole run: admission, loop with the scripted model, commit to SQLite. No HTTP.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use agent_runtime::agent::AgentDefinition;
use agent_runtime::agent::state::ExecutionBudget;
use agent_runtime::app::{App, Extensions};
use agent_runtime::config::{self, Sources};
use agent_runtime::json::Object;
use agent_runtime::limits::RunLimits;
use agent_runtime::message::{ContentPart, Role, Section};
use agent_runtime::record::{RunMode, RunStatus};
use agent_runtime::run::{EventOptions, InputMessage, OnDisconnect, RunRequest};
use agent_runtime::session::OverrideChanges;
use agent_runtime::store::{ConflictPolicy, IfBusy};
use agent_runtime::tenant::TenantId;
use criterion::Criterion;
use serde_json::json;
use tokio::runtime::Runtime;

const SCRIPT: &str = r#"
[[turn]]
when = "sum"
step = 0
tool_calls = [{ name = "calculator", arguments = { expression = "19 * 23" } }]

[[turn]]
text = "The one along the river is shorter, and after an hour it passes a village with two inns."
chunk_chars = 6
"#;

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
        group.bench_function(name, |bencher| bencher.to_async(&runtime).iter(|| run(&app, words)));
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
    app.agents.put(&TenantId::anonymous(), definition).await.unwrap();
    app
}

async fn run(app: &App, words: &str) {
    let request = RunRequest {
        base_session_id: None,
        environment_from: None,
        agent: Some("bench".to_owned()),
        input: vec![InputMessage {
            role: Role::User,
            name: None,
            section: Section::default(),
            content: vec![ContentPart::text(words)],
            metadata: Object::new(),
        }],
        mode: RunMode::Sync,
        durability: None,
        priority: 0,
        thread: None,
        if_busy: IfBusy::Reject,
        webhook: None,
        idempotency: None,
        model: None,
        overrides: OverrideChanges::default(),
        budget: ExecutionBudget::default(),
        metadata: Object::new(),
        variables: BTreeMap::new(),
        response_format: None,
        conflict: ConflictPolicy::Fork,
        on_disconnect: OnDisconnect::Continue,
        limits: RunLimits::default(),
        events: EventOptions::default(),
        request_id: None,
    };
    let handle = Arc::clone(&app.runs.starter)
        .start(TenantId::anonymous(), request)
        .await
        .unwrap();
    let record = handle.result().await.unwrap();
    assert_eq!(
        record.summary.status,
        RunStatus::Completed,
        "{:?}",
        record.summary.error
    );
}
