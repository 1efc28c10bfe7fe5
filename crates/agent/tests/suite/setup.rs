//! An agent made of fakes, as each test wants it.

use std::sync::{Arc, OnceLock};

use agent::answers::{AnswerRules, AnsweredStep};
use agent::compilers::{Sections, Traces};
use agent::definition::{DriverKind, ErrorPolicy, ErrorPolicyPreset, HookConfig, ScriptStep};
use agent::drivers::{Driver, DriverPorts};
use agent::hooks::{ErrorPolicyHook, ExecutionGuard, ExecutionPorts, Hook, HookRegistry, HookStack, StackSlot};
use agent::journal::{Journal, Progress, RecordSize, Recorder as JournalRecorder};
use agent::model_calls::{ModelChain, ModelChoice};
use agent::ports::{Tool, ToolCatalog as _};
use agent::state::{AgentState, ExecutionBudget, ExecutionStatus, StopReason};
use agent::{AgentLoop, CallSeed, ExecutionControl, Inbox, RequestRoom, builtin_hooks};
use chrono::TimeDelta;
use test_support::clock::TestClock;
use test_support::fake_model::{Beat, FakeModel};
use test_support::fake_tool::FakeTool;
use test_support::provider_rules::assert_history_valid;
use test_support::recorder::Recorder;
use tokio_util::sync::CancellationToken;
use tools::{CallLimits, ToolRegistry};
use values::clock::Clock as _;
use values::ids::{AgentId, MessageId, UuidV7Source};
use values::json::Value;
use values::message::{Message, Role, joined_text};
use values::model_parameters::{ModelParameters, ProviderTools, ToolChoice};
use values::model_ref::ResponseFormat;
use values::session::EnvironmentState;
use values::tenant::TenantId;
use values::usage::{Price, Usage};
use workspace::environment::Environment;

/// Makes and runs the agent. Guards come before all other hooks and the error policy after them, as
/// in the service.
pub(super) struct Setup {
    pub(super) model: Arc<FakeModel>,
    pub(super) events: Arc<Recorder>,
    pub(super) clock: TestClock,
    pub(super) cancellation: CancellationToken,
    pub(super) stop: CancellationToken,
    pub(super) pause: CancellationToken,
    journal: Option<Arc<dyn Journal>>,
    inbox: Option<Arc<dyn Inbox>>,
    budget: ExecutionBudget,
    /// Of the execution that this one works for, if there is one.
    budget_above: Option<ExecutionBudget>,
    max_record_bytes: Option<u64>,
    price: Option<Price>,
    fallbacks: Vec<ModelChoice>,
    policy: ErrorPolicy,
    tools: Vec<Arc<dyn Tool>>,
    hooks: Vec<(i32, Arc<dyn Hook>)>,
    attached: Vec<HookConfig>,
    /// One for all executions, as in the service.
    registry: HookRegistry,
    parallel_tool_calls: bool,
    control: OnceLock<Arc<ExecutionControl>>,
    driver: DriverKind,
    script: Vec<ScriptStep>,
    format: ResponseFormat,
    parameters: ModelParameters,
    provider_tools: Arc<ProviderTools>,
    pub(super) environment: Arc<Environment>,
    answers: Arc<AnswerRules>,
}

impl Setup {
    pub(super) fn new(answers: impl IntoIterator<Item = Vec<Beat>>) -> Self {
        Self::of_model(FakeModel::new(answers))
    }

    pub(super) fn of_model(model: Arc<FakeModel>) -> Self {
        Self {
            model,
            events: Arc::default(),
            clock: TestClock::new(),
            cancellation: CancellationToken::new(),
            stop: CancellationToken::new(),
            pause: CancellationToken::new(),
            journal: None,
            inbox: None,
            budget: ExecutionBudget::default(),
            budget_above: None,
            max_record_bytes: None,
            price: None,
            fallbacks: Vec::new(),
            policy: ErrorPolicy::default(),
            tools: Vec::new(),
            hooks: Vec::new(),
            attached: Vec::new(),
            registry: HookRegistry::new(builtin_hooks()),
            parallel_tool_calls: true,
            control: OnceLock::new(),
            driver: DriverKind::ToolCalling,
            script: Vec::new(),
            format: ResponseFormat::Text,
            parameters: ModelParameters::default(),
            provider_tools: Arc::default(),
            environment: Arc::new(Environment::in_memory(EnvironmentState::default())),
            answers: Arc::default(),
        }
    }

    pub(super) fn with_answers(self, answers: AnswerRules) -> Self {
        let answers = Arc::new(answers);
        Self { answers, ..self }
    }

    pub(super) fn with_driver(self, driver: DriverKind) -> Self {
        Self { driver, ..self }
    }

    /// Plays the steps, given as JSON, with the scripted driver.
    pub(super) fn with_script(self, steps: Value) -> Self {
        Self {
            driver: DriverKind::Scripted,
            script: serde_json::from_value(steps).unwrap(),
            ..self
        }
    }

    pub(super) fn with_format(self, format: ResponseFormat) -> Self {
        Self { format, ..self }
    }

    /// Tells the model which tools to call.
    pub(super) fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.parameters.tool_choice = Some(choice);
        self
    }

    /// Offers a tool that the provider of this name executes itself.
    pub(super) fn with_provider_tool(mut self, provider: &str) -> Self {
        let tools = serde_json::json!({ provider: [{"type": "web_search"}] });
        self.provider_tools = serde_json::from_value(tools).map(Arc::new).unwrap();
        self
    }

    pub(super) fn with_budget(self, budget: ExecutionBudget) -> Self {
        Self { budget, ..self }
    }

    /// Makes the execution one of a subagent, whose parent has this budget.
    pub(super) fn below(self, budget: ExecutionBudget) -> Self {
        let budget_above = Some(budget);
        Self { budget_above, ..self }
    }

    /// Bounds the run's record.
    pub(super) fn with_max_record(self, bytes: u64) -> Self {
        Self {
            max_record_bytes: Some(bytes),
            ..self
        }
    }

    pub(super) fn with_price(self, price: Price) -> Self {
        Self {
            price: Some(price),
            ..self
        }
    }

    /// Adds a model that is asked when those before it fail.
    pub(super) fn with_fallback(mut self, name: &str, model: &Arc<FakeModel>, price: Option<Price>) -> Self {
        self.fallbacks.push(ModelChoice {
            model_ref: name.parse().unwrap(),
            model: Arc::clone(model) as _,
            price,
        });
        self
    }

    pub(super) fn with_policy(self, policy: ErrorPolicyPreset) -> Self {
        self.with_error_policy(ErrorPolicy::Preset(policy))
    }

    pub(super) fn with_error_policy(self, policy: ErrorPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Has executions recorded.
    pub(super) fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        let journal = Some(journal);
        Self { journal, ..self }
    }

    /// Takes messages while executions are at work.
    pub(super) fn with_inbox(self, inbox: Arc<dyn Inbox>) -> Self {
        let inbox = Some(inbox);
        Self { inbox, ..self }
    }

    pub(super) fn with_calls_in_turn(self) -> Self {
        Self {
            parallel_tool_calls: false,
            ..self
        }
    }

    pub(super) fn with_tool(mut self, tool: &Arc<FakeTool>) -> Self {
        self.tools.push(Arc::clone(tool) as _);
        self
    }

    pub(super) fn with_any_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    pub(super) fn with_environment(self, environment: Environment) -> Self {
        let environment = Arc::new(environment);
        Self { environment, ..self }
    }

    pub(super) fn with_hook(self, hook: impl Hook + 'static) -> Self {
        self.with_hook_at(0, hook)
    }

    pub(super) fn with_hook_at(mut self, priority: i32, hook: impl Hook + 'static) -> Self {
        self.hooks.push((priority, Arc::new(hook)));
        self
    }

    /// Attaches a hook of the service by its name, as an agent's definition does.
    pub(super) fn with_attached(mut self, name: &str, config: Value) -> Self {
        let Value::Object(config) = config else {
            panic!("a configuration is an object")
        };
        self.attached.push(HookConfig {
            name: name.to_owned(),
            priority: 0,
            config,
        });
        self
    }

    /// Returns the state of an agent that has not run yet.
    pub(super) fn new_state(&self) -> AgentState {
        AgentState::new(AgentId::generate(&UuidV7Source), self.clock.now()).with_response_format(self.format.clone())
    }

    /// Runs one execution of a new agent on the input "go".
    /// Returns how long the execution has taken.
    pub(super) fn elapsed(&self, state: &AgentState) -> TimeDelta {
        state.execution().unwrap().duration(self.clock.now())
    }

    pub(super) async fn run(&self) -> AgentState {
        self.run_from(self.new_state(), "go").await
    }

    /// Runs one execution, and checks that its history is one that providers accept.
    pub(super) async fn run_from(&self, state: AgentState, input: &str) -> AgentState {
        let message = Message::text(MessageId::generate(&UuidV7Source), Role::User, input, self.clock.now());
        self.run_on(state, vec![message]).await
    }

    /// Does the same on other messages.
    pub(super) async fn run_on(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let state = self.agent_loop(&state, None).run(state, input).await;
        assert_history_valid(&state.stored_messages().cloned().collect::<Vec<_>>());
        state
    }

    /// Runs one execution that begins with answers, and checks that its history is one that
    /// providers accept.
    pub(super) async fn answer(&self, state: AgentState, input: &[&str], answered: AnsweredStep) -> AgentState {
        let message =
            |text: &&str| Message::text(MessageId::generate(&UuidV7Source), Role::User, *text, self.clock.now());
        let input = input.iter().map(message).collect();
        let state = self.agent_loop(&state, None).answer(state, input, answered).await;
        assert_history_valid(&state.stored_messages().cloned().collect::<Vec<_>>());
        state
    }

    /// Returns what bounds the first execution; there is nothing before its first event.
    pub(super) fn control(&self) -> Option<&Arc<ExecutionControl>> {
        self.control.get()
    }

    /// Goes on with an execution that was stored after a step.
    pub(super) async fn resume_from(&self, state: AgentState) -> AgentState {
        self.go_on(Progress {
            state,
            pending: None,
            environment: None,
        })
        .await
    }

    /// Goes on with an execution from what its journal has.
    pub(super) async fn go_on(&self, progress: Progress) -> AgentState {
        let agent_loop = self.agent_loop(&progress.state, Some(&progress));
        let state = agent_loop.resume(progress.state, progress.pending).await;
        assert_history_valid(&state.stored_messages().cloned().collect::<Vec<_>>());
        state
    }

    /// Makes the loop of an execution that begins with the state, or has come somewhere before.
    fn agent_loop(&self, state: &AgentState, earlier: Option<&Progress>) -> AgentLoop {
        let journal = self.journal.as_ref();
        let journal = journal.map(|journal| {
            Arc::new(JournalRecorder::new(
                Arc::clone(journal),
                state.clone(),
                Arc::clone(&self.environment),
            ))
        });
        let agent_loop = self.recorded_loop(journal.clone(), earlier);
        let agent_loop = match journal {
            Some(journal) => agent_loop.with_journal(journal),
            None => agent_loop,
        };
        match &self.inbox {
            Some(inbox) => agent_loop.with_inbox(Arc::clone(inbox)),
            None => agent_loop,
        }
    }

    fn recorded_loop(&self, journal: Option<Arc<JournalRecorder>>, earlier: Option<&Progress>) -> AgentLoop {
        let clock = Arc::new(self.clock);
        let control = |budget| ExecutionControl::new(budget, self.cancellation.clone(), clock.clone());
        let control = match &self.budget_above {
            Some(above) => Arc::new(control(above.clone())).for_subagent(self.budget.clone(), None),
            None => control(self.budget.clone()),
        };
        let control = control.with_stop(self.stop.clone()).with_pause(self.pause.clone());
        let spent = earlier.map_or(Usage::NOTHING, Progress::spent);
        let record = self.max_record_bytes.map(RecordSize::new).unwrap_or_default();
        let control = Arc::new(control.with_spent(spent, Usage::NOTHING).with_record(record));
        if let Some(earlier) = earlier {
            control.record().add_progress(earlier);
        }
        // Tests that reach for it make one execution.
        let _ = self.control.set(Arc::clone(&control));
        let guards = HookStack::default()
            .with_events(Arc::clone(&self.events) as _)
            .with_environment(Arc::clone(&self.environment))
            .with_hook(1_000, Arc::new(ExecutionGuard::new(Arc::clone(&control))))
            .with_hook(-1_000, Arc::new(ErrorPolicyHook::new(self.policy, clock.clone())));
        let hooks = self.hooks.iter().fold(guards, |stack, (priority, hook)| {
            stack.with_hook(*priority, Arc::clone(hook))
        });
        let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let tools = ToolRegistry::new(
            self.tools.clone(),
            CallLimits::default(),
            clock.clone(),
            Arc::new(UuidV7Source),
        );
        let choice = ModelChoice {
            model_ref: "fake/one".parse().unwrap(),
            model: Arc::clone(&self.model) as _,
            price: self.price,
        };
        let models = ModelChain::new(choice, self.fallbacks.clone());
        // One of its own: work that other tests have done beside the async workers keeps nobody
        // here waiting.
        let tenant: TenantId = format!("tenant-{}", AgentId::generate(&UuidV7Source)).parse().unwrap();
        let execution = ExecutionPorts {
            tenant: tenant.clone(),
            models: models.clone(),
            compiler: Arc::new(Sections::conversation(Traces::default())),
            control: Arc::clone(&control),
            ids: Arc::new(UuidV7Source),
            events: Arc::clone(&self.events) as _,
            request_room: RequestRoom::new(1 << 20),
            stack: StackSlot::default(),
        };
        let hooks = Arc::new(self.registry.attach(hooks, &self.attached, &execution).unwrap());
        execution.stack.fill(&hooks);
        let ports = DriverPorts {
            tenant,
            models,
            parameters: Arc::new(self.parameters.clone()),
            provider_tools: Arc::clone(&self.provider_tools),
            parallel_tool_calls: self.parallel_tool_calls,
            formats: Arc::default(),
            max_corrections: 2,
            hooks: Arc::clone(&hooks),
            answers: Arc::clone(&self.answers),
            tools: tools.unwrap().executor(&names).unwrap(),
            call_seed: CallSeed::of_call("run"),
            journal,
            compiler: Arc::new(Sections::conversation(Traces::default())),
            control: Arc::clone(&control),
            environment: Arc::clone(&self.environment),
            ids: Arc::new(UuidV7Source),
            events: Arc::clone(&self.events) as _,
        };
        let driver = Driver::new(ports, self.driver, self.script.clone());
        AgentLoop::new(
            driver,
            hooks,
            Arc::clone(&self.events) as _,
            control,
            Arc::new(UuidV7Source),
        )
    }
}

pub(super) fn budget(change: impl FnOnce(&mut ExecutionBudget)) -> ExecutionBudget {
    let mut budget = ExecutionBudget::default();
    change(&mut budget);
    budget
}

/// Checks how an execution has ended.
#[track_caller]
pub(super) fn assert_ended(state: &AgentState, status: ExecutionStatus, reason: StopReason) {
    assert_eq!((state.status(), state.stop_reason()), (Some(status), Some(reason)));
}

/// Returns who says what in the conversation: tool calls and results by their ids.
pub(super) fn transcript(state: &AgentState) -> Vec<String> {
    shown(state.stored_messages())
}

/// Shows messages in short.
pub(super) fn shown<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> Vec<String> {
    let line = |message: &Arc<Message>| {
        let calls = message.tool_calls().map(|call| format!(" call {}", call.id));
        let results = message.tool_results().map(|result| {
            let kind = if result.is_error { "error" } else { "result" };
            format!(" {kind} {}", result.call_id)
        });
        let role = match message.role {
            Role::System => "system:",
            Role::User => "user:",
            Role::Assistant => "assistant:",
            Role::Tool => "tool:",
        };
        let text = message.joined_text();
        let text = if text.is_empty() { text } else { format!(" {text}") };
        let parts: String = calls.chain(results).collect();
        format!("{role}{text}{parts}")
    };
    messages.map(line).collect()
}

/// Returns the words of the newest step, also of one that was cut.
pub(super) fn last_words(state: &AgentState) -> String {
    let messages = state.current_response().iter();
    messages.map(|message| joined_text(&message.content)).collect()
}
