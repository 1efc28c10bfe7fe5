//! An agent made of fakes, as each test wants it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_runtime::agent::compilers::ConversationWithCurrentTrace;
use agent_runtime::agent::drivers::{DriverPorts, ToolCallingDriver};
use agent_runtime::agent::hooks::{BudgetGuard, ErrorPolicyHook, Hook, HookStack};
use agent_runtime::agent::ports::{Tool, ToolCatalog as _};
use agent_runtime::agent::state::{AgentState, ExecutionBudget};
use agent_runtime::agent::{AgentLoop, ErrorPolicy, ExecutionControl};
use agent_runtime::clock::Clock as _;
use agent_runtime::ids::{AgentId, MessageId, UuidV7Source};
use agent_runtime::message::{Message, Role, joined_text};
use agent_runtime::tools::{ToolRegistry, ToolSettings};
use agent_runtime::usage::Price;
use tokio_util::sync::CancellationToken;

use crate::support::clock::TestClock;
use crate::support::fake_model::{Beat, FakeModel};
use crate::support::fake_tool::FakeTool;
use crate::support::provider_rules::assert_history_valid;
use crate::support::recorder::Recorder;

/// Makes and runs the agent. Guards come before all other hooks and the error policy after them, as in the service.
pub(super) struct Setup {
    pub(super) model: Arc<FakeModel>,
    pub(super) events: Arc<Recorder>,
    pub(super) clock: TestClock,
    pub(super) cancellation: CancellationToken,
    budget: ExecutionBudget,
    price: Option<Price>,
    policy: ErrorPolicy,
    tools: Vec<Arc<dyn Tool>>,
    hooks: Vec<Arc<dyn Hook>>,
}

impl Setup {
    pub(super) fn new(answers: impl IntoIterator<Item = Vec<Beat>>) -> Self {
        Self {
            model: FakeModel::new(answers),
            events: Arc::default(),
            clock: TestClock::new(),
            cancellation: CancellationToken::new(),
            budget: ExecutionBudget::unlimited(),
            price: None,
            policy: ErrorPolicy::default(),
            tools: Vec::new(),
            hooks: Vec::new(),
        }
    }

    pub(super) fn with_budget(self, budget: ExecutionBudget) -> Self {
        Self { budget, ..self }
    }

    pub(super) fn with_price(self, price: Price) -> Self {
        Self {
            price: Some(price),
            ..self
        }
    }

    pub(super) fn with_policy(self, policy: ErrorPolicy) -> Self {
        Self { policy, ..self }
    }

    pub(super) fn with_tool(mut self, tool: &Arc<FakeTool>) -> Self {
        self.tools.push(Arc::clone(tool) as _);
        self
    }

    pub(super) fn with_hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Returns the state of an agent that has not run yet.
    pub(super) fn new_state(&self) -> AgentState {
        AgentState::new(AgentId::generate(&UuidV7Source), self.clock.now())
    }

    /// Runs one execution of a new agent on the input "go".
    pub(super) async fn run(&self) -> AgentState {
        self.run_from(self.new_state(), "go").await
    }

    /// Runs one execution, and checks that its history is one that providers accept.
    pub(super) async fn run_from(&self, state: AgentState, input: &str) -> AgentState {
        let message = Message::text(MessageId::generate(&UuidV7Source), Role::User, input, self.clock.now());
        let state = self.agent_loop().run(state, vec![message]).await;
        assert_history_valid(&state.messages().cloned().collect::<Vec<_>>());
        state
    }

    fn agent_loop(&self) -> AgentLoop {
        let clock = Arc::new(self.clock);
        let control = Arc::new(ExecutionControl {
            budget: self.budget.clone(),
            price: self.price,
            cancellation: self.cancellation.clone(),
            clock: clock.clone(),
        });
        let guards = HookStack::default()
            .with_hook(1_000, Arc::new(BudgetGuard::new(Arc::clone(&control))))
            .with_hook(-1_000, Arc::new(ErrorPolicyHook::new(self.policy, clock.clone())));
        let hooks = self
            .hooks
            .iter()
            .fold(guards, |stack, hook| stack.with_hook(0, Arc::clone(hook)));
        let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let tools = ToolRegistry::new(
            self.tools.clone(),
            ToolSettings::default(),
            clock.clone(),
            Arc::new(UuidV7Source),
        );
        let driver = ToolCallingDriver::new(DriverPorts {
            model: Arc::clone(&self.model) as _,
            model_ref: "fake/one".parse().unwrap(),
            tools: tools.unwrap().executor(&names).unwrap(),
            compiler: Arc::new(ConversationWithCurrentTrace),
            control,
            variables: Arc::new(BTreeMap::new()),
            ids: Arc::new(UuidV7Source),
            events: Arc::clone(&self.events) as _,
        });
        AgentLoop::new(
            Box::new(driver),
            hooks,
            Arc::clone(&self.events) as _,
            clock,
            Arc::new(UuidV7Source),
        )
    }
}

/// Returns who says what in the conversation: tool calls and results by their ids.
pub(super) fn transcript(state: &AgentState) -> Vec<String> {
    shown(state.messages())
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
