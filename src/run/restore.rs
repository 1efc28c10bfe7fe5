//! Restoring a run: from a bundle and a plan to the state, the environment and the loop.

use std::sync::Arc;

use super::live::LiveEvents;
use super::outcome::Failure;
use super::plan::{Base, RunPlan};
use super::service::RunService;
use super::subagents::Children;
use super::work::Work;
use crate::agent::drivers::{Driver, DriverPorts, ReactDriver, ScriptedDriver, ToolCallingDriver};
use crate::agent::hooks::{BudgetGuard, CancellationHook, ErrorPolicyHook, ExecutionPorts, HookStack, StackSlot};
use crate::agent::ports::Environment;
use crate::agent::state::{AgentContext, AgentState, MessageStore};
use crate::agent::{AgentLoop, DriverKind, ExecutionControl};
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

    /// Makes the work of the run's own agent, above which there is nobody.
    pub(super) fn work(&self, plan: &RunPlan, live: &Arc<LiveEvents>, restored: &Restored) -> Work {
        let control = ExecutionControl::new(
            plan.budget.clone(),
            live.cancellation.clone(),
            Arc::clone(&self.ports.clock),
        );
        Work {
            agent: Arc::clone(&plan.agent),
            agent_version: plan.agent_version,
            models: plan.models.clone(),
            tools: plan.agent.tools.clone(),
            hooks: plan.agent.hooks.clone(),
            session_id: live.summary().session_id,
            depth_left: plan.agent.max_depth,
            control: Arc::new(control),
            events: Arc::clone(live) as _,
            variables: restored.environment.variables(),
            team: Arc::clone(&plan.team),
            children: Children::default(),
        }
    }

    /// Makes the loop with the driver, the tools and the hooks that the agent names.
    pub(super) fn agent_loop(self: &Arc<Self>, work: &Arc<Work>) -> Result<AgentLoop, Failure> {
        let (agent, control, events) = (&work.agent, &work.control, &work.events);
        let compiler = agent.compiler.compiler();
        let stack = HookStack::default()
            .with_hook(GUARD_PRIORITY, Arc::new(CancellationHook::new(Arc::clone(control))))
            .with_hook(GUARD_PRIORITY, Arc::new(BudgetGuard::new(Arc::clone(control))))
            .with_hook(
                POLICY_PRIORITY,
                Arc::new(ErrorPolicyHook::new(agent.error_policy, Arc::clone(&self.ports.clock))),
            );
        let execution = ExecutionPorts {
            models: work.models.clone(),
            compiler: Arc::clone(&compiler),
            control: Arc::clone(control),
            ids: Arc::clone(&self.ports.ids),
            events: Arc::clone(events),
            stack: StackSlot::default(),
        };
        let hooks = self.ports.hooks.attach(stack, &work.hooks, &execution);
        let hooks = Arc::new(hooks.map_err(|error| Failure::hooks(&error))?);
        execution.stack.fill(&hooks);
        let tools = self.ports.tools.executor_with(&work.tools, self.subagent_tools(work));
        let ports = DriverPorts {
            models: work.models.clone(),
            parameters: Arc::new(agent.parameters.clone()),
            tools: tools.map_err(|error| Failure::tools(&error))?,
            parallel_tool_calls: agent.parallel_tool_calls,
            max_corrections: agent.max_corrections,
            compiler,
            hooks: Arc::clone(&hooks),
            control: Arc::clone(control),
            variables: Arc::clone(&work.variables),
            ids: Arc::clone(&self.ports.ids),
            events: Arc::clone(events),
        };
        let driver: Box<dyn Driver> = match agent.driver {
            DriverKind::ToolCalling => Box::new(ToolCallingDriver::new(ports)),
            DriverKind::React => Box::new(ReactDriver::new(ports)),
            DriverKind::Scripted => Box::new(ScriptedDriver::new(ports, agent.script.clone())),
        };
        Ok(AgentLoop::new(
            driver,
            hooks,
            Arc::clone(events),
            Arc::clone(&self.ports.clock),
            Arc::clone(&self.ports.ids),
        ))
    }

    /// The agent's own prompt is in force; where it has none, the session's stays.
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
        state.with_response_format(plan.response_format.clone())
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
