//! The parts that outlive processes: the store, the models and the tools; and processes that die.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use agent_runtime::app::Extensions;
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::full_store::Refusals;
use test_support::gate::Gate;
use test_support::logs::listen;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::layer::SubscriberExt as _;
use uuid::Uuid;
use values::json::Value;

use crate::support::gated::assert_without_gap;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::{TestApp, run_path, session_path};

/// A lease never expires by itself during a test.
const SETTINGS: [(&str, &str); 2] = [("queue.lease", "10m"), ("queue.poll_interval", "20ms")];
/// A process that accepts runs and works on none.
pub(in crate::end_to_end) const ACCEPTS_ONLY: [(&str, &str); 1] = [("queue.role", "api")];
/// How long a process may take to die.
const DEATH: Duration = Duration::from_secs(10);

/// The parts that outlive every process.
pub(in crate::end_to_end) struct World {
    pub(in crate::end_to_end) database: TestDatabase,
    pub(in crate::end_to_end) mock: Arc<MockModel>,
    /// The gate at which the tools `once` and `again` wait.
    pub(in crate::end_to_end) tool_gate: Arc<Gate>,
    /// Answers at once, and may not be called again.
    pub(in crate::end_to_end) plain: Arc<FakeTool>,
    /// May not be called again.
    pub(in crate::end_to_end) once: Arc<FakeTool>,
    /// May be called again.
    pub(in crate::end_to_end) again: Arc<FakeTool>,
}

/// A process: it has threads of its own, and dies with all that they do.
pub(in crate::end_to_end) struct Replica {
    app: TestApp,
    runtime: Runtime,
    /// The name of its connections on PostgreSQL.
    name: String,
}

impl World {
    /// Makes a world whose models answer as the function says.
    pub(in crate::end_to_end) async fn new(
        database: TestDatabase,
        answerer: impl Fn(&Value) -> Reply + Send + 'static,
    ) -> Self {
        let tool_gate = Gate::new();
        let held = || Behaviour::Held(Arc::clone(&tool_gate));
        Self {
            database,
            mock: Arc::new(MockModel::start(answerer).await),
            plain: FakeTool::new("plain", Behaviour::Answer("plainly done".to_owned())),
            once: FakeTool::new("once", held()),
            again: FakeTool::idempotent("again", held()),
            tool_gate,
        }
    }

    /// Starts a process that works on runs.
    pub(in crate::end_to_end) async fn replica(&self) -> Replica {
        self.replica_with(&[]).await
    }

    /// Starts a process with these settings on top.
    pub(in crate::end_to_end) async fn replica_with(&self, settings: &[(&'static str, &'static str)]) -> Replica {
        self.replica_watched(settings, None).await
    }

    /// Starts a process with these settings, and notes its writes that the store refuses.
    pub(in crate::end_to_end) async fn replica_watched(
        &self,
        settings: &[(&'static str, &'static str)],
        refusals: Option<Refusals>,
    ) -> Replica {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).enable_all();
        if let Some(refusals) = refusals {
            builder.on_thread_start(move || {
                let subscriber = tracing_subscriber::registry().with(refusals.clone());
                // For as long as the thread lives.
                std::mem::forget(listen(subscriber));
            });
        }
        let runtime = builder.build().unwrap();
        let tools = [&self.plain, &self.once, &self.again].map(|tool| Arc::clone(tool) as _);
        let extensions = Extensions {
            tools: tools.into(),
            ..Extensions::default()
        };
        let settings = [&SETTINGS, settings].concat();
        let name = format!("replica-{}", Uuid::now_v7());
        let (url, mock) = (self.database.url_for(&name), Arc::clone(&self.mock));
        // What the service begins works on the threads of the process.
        let starting = runtime.spawn(async move { TestApp::start_extended(&url, &mock, &settings, extensions).await });
        let app = starting.await.unwrap();
        Replica { app, runtime, name }
    }

    /// Ends a process whose run waits at a gate, and starts another one. The gate lets the call
    /// pass.
    pub(in crate::end_to_end) async fn successor(&self, dying: Replica, gate: &Gate) -> Replica {
        dying.die(self).await;
        gate.until_waiting(0).await;
        gate.open(1);
        self.replica().await
    }

    /// Lets the leases of all processes expire.
    pub(in crate::end_to_end) async fn expire_leases(&self) {
        let expire = "update run_queue set leased_until = enqueued_at where leased_until is not null";
        self.database.execute(expire).await.unwrap();
    }

    /// Returns what was asked of which model: for each request the number of results that it holds.
    pub(in crate::end_to_end) fn asked(&self) -> Vec<(String, usize)> {
        let requests = self.mock.requests();
        let asked = requests.iter().map(|request| {
            let results = tool_results(request).len();
            (request["model"].as_str().unwrap().to_owned(), results)
        });
        asked.collect()
    }
}

impl Replica {
    /// Ends the process without a warning, and lets its leases expire.
    pub(in crate::end_to_end) async fn die(self, world: &World) {
        self.vanish(world).await;
        world.expire_leases().await;
    }

    /// Ends the process, which may not be able to write, and lets its successor write again.
    pub(in crate::end_to_end) async fn die_in_full_store(self, world: &World) {
        self.vanish(world).await;
        world.database.make_room(None).await;
        world.expire_leases().await;
    }

    /// Ends the process without a warning. What it had sent to the store is done by then.
    pub(in crate::end_to_end) async fn vanish(self, world: &World) {
        let Self { app, runtime, name } = self;
        let dying = tokio::task::spawn_blocking(move || {
            runtime.shutdown_timeout(DEATH);
        });
        dying.await.unwrap();
        drop(app);
        world.database.until_disconnected(&name).await;
    }

    /// Stops the process in order, and checks that nothing is left over.
    pub(in crate::end_to_end) async fn finish(self) {
        let Self { app, runtime, .. } = self;
        app.finish().await;
        runtime.shutdown_background();
    }
}

impl Deref for Replica {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

/// Writes bytes in the engine's own way.
pub(in crate::end_to_end) fn bytes(database: &TestDatabase, text: &str) -> String {
    let hex = text
        .bytes()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    match database.engine {
        Engine::Postgres => format!(r"'\x{hex}'::bytea"),
        Engine::Sqlite => format!("x'{hex}'"),
    }
}

/// Checks the events of a run that was resumed after so many steps each time: without gaps, one
/// beginning, one end. Returns them.
pub(in crate::end_to_end) async fn resumed_events(app: &TestApp, run: &Value, resumed: &[u64]) -> Vec<Value> {
    let events = app.events_after(run, 0).await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_without_gap(&events);
    let of = |wanted: &str| types.iter().filter(|found| **found == wanted).count();
    assert_eq!((types[0], of("run.started")), ("run.started", 1), "{types:?}");
    let expected: Vec<_> = (2..)
        .zip(resumed)
        .map(|(attempts, steps)| json!({"attempts": attempts, "step_count": steps}))
        .collect();
    let reported = events.iter().filter(|event| event["type"] == "run.resumed");
    assert_eq!(
        reported.map(|event| &event["data"]).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>(),
        "{types:?}"
    );
    let terminal = [
        "run.completed",
        "run.stopped",
        "run.waiting",
        "run.failed",
        "run.cancelled",
    ]
    .map(of);
    assert_eq!(terminal.iter().sum::<usize>(), 1, "{types:?}");
    assert!(
        terminal.contains(&1) && types[types.len() - 1].starts_with("run."),
        "{types:?}"
    );
    events
}

/// The steps of a run without what differs each time.
pub(in crate::end_to_end) async fn steps_of(app: &TestApp, run: &Value) -> Value {
    let mut steps = app.get(&run_path(run, "/steps")).await["data"].clone();
    without(
        &mut steps,
        &[
            "step_id",
            "id",
            "started_at",
            "first_token_at",
            "ended_at",
            "completed_at",
            "duration_ms",
            "created_at",
            "agent_id",
            "execution_id",
        ],
    );
    steps
}

/// Removes fields at every depth.
fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|value| without(value, names));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| without(value, names)),
        _ => (),
    }
}

/// The execution of which the events tell; exactly one.
pub(in crate::end_to_end) fn execution_of(events: &[Value]) -> &Value {
    let begun: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "execution.started")
        .collect();
    assert_eq!(begun.len(), 1, "{events:#?}");
    &begun[0]["data"]["execution_id"]
}

/// The messages of the session that a run has made.
pub(in crate::end_to_end) async fn messages_of(app: &TestApp, run: &Value) -> Vec<Value> {
    let session = app.get(&session_path(run, "")).await;
    session["message_history_state"]["messages"].as_array().unwrap().clone()
}
