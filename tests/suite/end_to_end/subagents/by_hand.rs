//! A service put together by hand, with a hook that only tests have and models that are no servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::hooks::{HookFactory, HookRegistry};
use agent::ports::{Model, ModelCatalog, ModelLookupError, RunWebhook, WebhookFault, WebhookRules};
use agent::record::{RunMode, RunRecord, StepRecord};
use agent::state::ExecutionBudget;
use agent_runtime::config::{self, Sources};
use agent_runtime::run::agents::{AgentChecks, AgentDirectory, AgentSource, ConfiguredAgent};
use agent_runtime::run::read::step_list;
use agent_runtime::run::{self, InputMessage, ProcessState, RunContext, RunRequest};
use board::Board;
use store::{self, Sessions};
use tasks::supervision::Supervisor;
use test_support::databases::TestDatabase;
use test_support::fake_model::FakeModel;
use test_support::fake_tool::{Behaviour, FakeTool};
use tools::mcp::McpServers;
use tools::{CallLimits, ToolRegistry, builtin_tools};
use values::clock::{Clock, SystemClock};
use values::ids::UuidV7Source;
use values::json::Value;
use values::message::ContentPart;
use values::model_ref::ModelRef;
use values::session::Bundle;
use values::tenant::TenantId;
use values::usage::PriceTable;

/// Models by name.
#[derive(Debug)]
struct Cast(BTreeMap<&'static str, Arc<FakeModel>>);

impl ModelCatalog for Cast {
    fn model(&self, name: &ModelRef) -> Result<Arc<dyn Model>, ModelLookupError> {
        Ok(Arc::clone(&self.0[name.model()]) as _)
    }
}

/// Agents without files.
#[derive(Debug)]
struct Given(Vec<ConfiguredAgent>);

impl AgentSource for Given {
    fn read(&self) -> Result<Vec<ConfiguredAgent>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.clone())
    }
}

/// Makes the service, with a tool `finish` that ends the run. Agents are on the models `m/lead` and
/// `m/worker`; the first is asked for.
pub(super) async fn service(
    database: &TestDatabase,
    lead: &Arc<FakeModel>,
    worker: &Arc<FakeModel>,
    hooks: impl HookFactory + 'static,
    agents: [Value; 2],
) -> Arc<RunContext> {
    let cast = Cast(BTreeMap::from([
        ("lead", Arc::clone(lead)),
        ("worker", Arc::clone(worker)),
    ]));
    let agents = agents.map(|agent| ConfiguredAgent {
        location: "a test".to_owned(),
        definition: serde_json::from_value(agent).unwrap(),
    });
    let store = store::open(database.url(), TestDatabase::settings()).await.unwrap();
    let hooks = Arc::new(HookRegistry::new([Box::new(hooks) as Box<dyn HookFactory>]));
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(UuidV7Source));
    let mut tools = builtin_tools(&(clock.clone() as _));
    tools.push(FakeTool::new("finish", Behaviour::End("handed over".to_owned())));
    let tools = ToolRegistry::new(tools, CallLimits::default(), clock.clone(), ids.clone());
    let (models, tools) = (Arc::new(cast), Arc::new(tools.unwrap()));
    let directory = AgentDirectory::new(
        store.clone(),
        AgentChecks {
            models: models.clone(),
            tools: tools.clone(),
            servers: Arc::new(McpServers::default()),
            hooks: hooks.clone(),
            prices: PriceTable::default(),
            limits: Arc::default(),
            budget: ExecutionBudget::default(),
            webhooks: Arc::new(NoWebhooks),
        },
        clock.clone(),
        Box::new(Given(agents.to_vec())),
    );
    let overrides = [
        ("runs.default_agent", "lead"),
        ("runs.max_concurrent", "1"),
        ("runs.max_subagents", "100"),
        ("runs.subagent_concurrency", "8"),
        ("queue.role", "api"),
    ];
    let loaded = config::load(&Sources {
        overrides: overrides.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..Sources::default()
    });
    let config = loaded.unwrap().config;
    let clock: Arc<dyn Clock> = clock;
    let limits = Arc::default();
    let process = ProcessState::new(&config.runs, &config.queue, config.subagents, &limits, &clock, &*ids);
    Arc::new(RunContext {
        sessions: Arc::new(Sessions::new(store.clone(), 1 << 20, Arc::new(SystemClock))),
        store,
        board: Arc::new(Board::default()),
        agents: Arc::new(directory.unwrap()),
        models,
        tools,
        servers: Arc::new(McpServers::default()),
        hooks,
        prices: PriceTable::default(),
        limits,
        clock,
        ids,
        outbox: Arc::default(),
        metrics: None,
        traces: None,
        supervisor: Supervisor::default(),
        settings: config.runs,
        queue: config.queue,
        subagents: config.subagents,
        idempotency: config.idempotency,
        workspace: config.workspace,
        answer_expiry: config.answer_expiry,
        process,
    })
}

/// Runs the agent that leads, and returns the run's record and its steps.
pub(super) async fn run(service: &Arc<RunContext>) -> (RunRecord, Vec<StepRecord>) {
    let tenant = TenantId::anonymous();
    let handle = run::start(service, tenant.clone(), request()).await.unwrap();
    let run_id = handle.run_id;
    let record = handle.result().await.unwrap();
    // The board shows the record until the store has it.
    let steps = step_list(service, &tenant, run_id).await.unwrap().unwrap();
    (Arc::unwrap_or_clone(record), steps)
}

/// Returns the session that a run has published.
pub(super) async fn published(database: &TestDatabase, record: &RunRecord) -> Arc<Bundle> {
    let store = store::open(database.url(), TestDatabase::settings()).await.unwrap();
    let sessions = Sessions::new(store, 1 << 20, Arc::new(SystemClock));
    let bundle = sessions
        .whole_bundle(&TenantId::anonymous(), record.summary.session_id)
        .await;
    bundle.unwrap().unwrap()
}

fn request() -> RunRequest {
    RunRequest {
        input: vec![InputMessage::of_user(vec![ContentPart::text("go")])],
        ..RunRequest::new(RunMode::Sync)
    }
}

/// Nobody names a webhook.
#[derive(Debug)]
struct NoWebhooks;

impl WebhookRules for NoWebhooks {
    fn check(&self, _: &RunWebhook, _: Option<&TenantId>) -> Result<(), WebhookFault> {
        Ok(())
    }
}
