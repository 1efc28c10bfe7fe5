//! Restoring a run: from a bundle and a plan to the state, the environment and the loop.

use std::sync::Arc;

use super::live::LiveEvents;
use super::outcome::Failure;
use super::plan::{Base, RunPlan};
use super::service::RunService;
use crate::agent::compilers::ConversationWithCurrentTrace;
use crate::agent::drivers::{Driver, DriverPorts, ToolCallingDriver};
use crate::agent::hooks::{BudgetGuard, ErrorPolicyHook, HookStack};
use crate::agent::ports::Environment;
use crate::agent::state::{AgentContext, AgentState, MessageStore};
use crate::agent::{AgentLoop, DriverKind, EventSink, ExecutionControl};
use crate::ids::AgentId;
use crate::json::Object;
use crate::session::Bundle;

/// Guards come before everything that an agent attaches, policies after it.
const GUARD_PRIORITY: i32 = 1_000;
const POLICY_PRIORITY: i32 = -1_000;

/// What the loop begins with.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) state: AgentState,
    pub(super) environment: Box<dyn Environment>,
}

impl RunService {
    /// Restores the state and the environment.
    pub(super) async fn restore(&self, plan: &RunPlan) -> Result<Restored, Failure> {
        let bundle = match &plan.base {
            Base::None => None,
            Base::Bundle(bundle) => Some(bundle),
            Base::Unreadable(_, error) => return Err(Failure::load(error)),
        };
        let environment = self
            .ports
            .environments
            .restore(&plan.environment)
            .await
            .map_err(|error| Failure::restore(&error))?;
        Ok(Restored {
            state: self.restore_state(plan, bundle),
            environment,
        })
    }

    /// Makes the loop with the driver and the hooks that the agent names.
    pub(super) fn agent_loop(&self, plan: &RunPlan, live: &Arc<LiveEvents>, restored: &Restored) -> AgentLoop {
        let control = Arc::new(ExecutionControl {
            budget: plan.budget.clone(),
            price: plan.price,
            cancellation: live.cancellation.clone(),
            clock: Arc::clone(&self.ports.clock),
        });
        let events: Arc<dyn EventSink> = Arc::clone(live) as _;
        let hooks = HookStack::default()
            .with_hook(GUARD_PRIORITY, Arc::new(BudgetGuard::new(Arc::clone(&control))))
            .with_hook(
                POLICY_PRIORITY,
                Arc::new(ErrorPolicyHook::new(
                    plan.agent.error_policy,
                    Arc::clone(&self.ports.clock),
                )),
            );
        let ports = DriverPorts {
            model: Arc::clone(&plan.model),
            model_ref: plan.model_ref.clone(),
            tools: Arc::clone(&plan.tools),
            compiler: Arc::new(ConversationWithCurrentTrace),
            control,
            variables: restored.environment.variables(),
            ids: Arc::clone(&self.ports.ids),
            events: Arc::clone(&events),
        };
        let driver: Box<dyn Driver> = match plan.agent.driver {
            DriverKind::ToolCalling => Box::new(ToolCallingDriver::new(ports)),
        };
        AgentLoop::new(
            driver,
            hooks,
            events,
            Arc::clone(&self.ports.clock),
            Arc::clone(&self.ports.ids),
        )
    }

    /// The agent's own prompt and shape of answers are in force; where it has none, the session's stay.
    fn restore_state(&self, plan: &RunPlan, bundle: Option<&Arc<Bundle>>) -> AgentState {
        let definition = &plan.agent;
        let state = match bundle {
            Some(bundle) => state_of(bundle, plan.session_metadata.clone()),
            None => AgentState::new(AgentId::generate(&*self.ports.ids), self.ports.clock.now())
                .with_metadata(plan.session_metadata.clone()),
        };
        let state = if definition.system_prompt.is_empty() {
            state
        } else {
            state.with_system_prompt(definition.system_prompt.clone())
        };
        let of_agent = (!definition.response_format.is_text()).then(|| definition.response_format.clone());
        match plan.response_format.clone().or(of_agent) {
            Some(response_format) => state.with_response_format(response_format),
            None => state,
        }
    }
}

fn state_of(bundle: &Bundle, metadata: Object) -> AgentState {
    let context = AgentContext {
        store: MessageStore::new(bundle.history.clone()),
        metadata,
        system_prompt: bundle.context.system_prompt.clone(),
        response_format: bundle.context.response_format.clone(),
    };
    AgentState::new(bundle.context.agent_id, bundle.context.created_at)
        .restored(
            bundle.context.created_at,
            bundle.head.created_at,
            bundle.head.execution_count,
            context,
        )
        .with_parent_agent_id(bundle.context.parent_agent_id)
        .with_model(bundle.context.model.clone())
}
