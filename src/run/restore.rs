//! Restores a run: turns a bundle and a plan into the state, the environment and the loop.

use std::sync::Arc;

use super::live::LiveEvents;
use super::outcome::Failure;
use super::plan::{Base, RunPlan};
use super::queue::read_journal;
use super::service::RunService;
use super::subagents::{Children, Slot};
use super::work::{Work, WorkJournal};
use crate::agent::drivers::{Driver, DriverPorts, ReactDriver, ScriptedDriver, ToolCallingDriver};
use crate::agent::hooks::{BudgetGuard, CancellationHook, ErrorPolicyHook, ExecutionPorts, HookStack, StackSlot};
use crate::agent::ports::Environment;
use crate::agent::state::{AgentContext, AgentState, MessageStore};
use crate::agent::{
    AgentLoop, CallSeed, DriverKind, Durability, ExecutionControl, Journals as _, Progress, RecordSize, Recorder,
};
use crate::json::Object;
use crate::record::RunSummary;
use crate::session::{Bundle, Overrides};
use crate::usage::Usage;

/// Guards come before everything that an agent attaches, policies after it.
const GUARD_PRIORITY: i32 = 1_000;
const POLICY_PRIORITY: i32 = -1_000;

/// The scope of the run's own agent in its journal.
const OWN_SCOPE: &str = "";

/// What the loop begins with.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) state: AgentState,
    pub(super) environment: Box<dyn Environment>,
    /// What earlier attempts have spent, of which the state is the result.
    pub(super) reached: Usage,
    /// What they have spent beside that.
    pub(super) lost: Usage,
    /// How far an earlier worker has come.
    pub(super) progress: Option<Progress>,
    /// Where it is recorded how far this one comes.
    pub(super) journal: Option<WorkJournal>,
}

impl RunService {
    /// Restores the state and the environment.
    pub(super) async fn restore(&self, plan: &RunPlan, live: &Arc<LiveEvents>) -> Result<Restored, Failure> {
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
        let state = restore_state(plan, live, bundle);
        let (progress, journal) = self.restore_progress(plan, live, &state).await?;
        let reached = progress.as_ref().map_or(Usage::NOTHING, Progress::spent);
        let lost = live.count_lost(reached);
        // A worker that died early has told nothing that lasts, and may have kept steps all the same.
        if live.is_resumed() || progress.is_some() {
            live.tell_resumed(progress.as_ref().map(|progress| &progress.state));
        }
        Ok(Restored {
            state,
            environment,
            reached,
            lost,
            progress,
            journal,
        })
    }

    /// Reads how far an earlier worker has come with a run that keeps its steps, and goes on recording after it.
    async fn restore_progress(
        &self,
        plan: &RunPlan,
        live: &LiveEvents,
        begun: &AgentState,
    ) -> Result<(Option<Progress>, Option<WorkJournal>), Failure> {
        if plan.durability != Durability::Step || live.active.tenure.is_none() {
            return Ok((None, None));
        }
        let journals = read_journal(&self.ports.store, &live.active).await;
        let journals = Arc::new(journals.map_err(|error| Failure::progress(&error))?);
        let progress = Progress::of(begun.clone(), journals.entries(OWN_SCOPE));
        let progress = progress.map_err(|error| Failure::progress(&error))?;
        if let Some(progress) = &progress {
            let history = progress.state.store().history();
            let is_known = |id| history.iter().any(|message| message.id == id);
            live.active.inbox.settle(is_known);
        }
        let reached = progress.as_ref().map_or(begun, |progress| &progress.state);
        let recorder = Recorder::new(journals.scope(OWN_SCOPE), reached.clone());
        let journal = WorkJournal {
            recorder: Arc::new(recorder),
            journals,
        };
        Ok((progress, Some(journal)))
    }

    /// Makes the work of the run's own agent, above which there is nobody.
    pub(super) fn work(&self, plan: &RunPlan, live: &Arc<LiveEvents>, restored: &mut Restored) -> Work {
        let active = &live.active;
        let control = ExecutionControl::new(
            plan.budget.clone(),
            active.cancellation.clone(),
            Arc::clone(&self.ports.clock),
        )
        .with_stop(active.stop.clone())
        .with_pause(active.pause())
        .with_spent(restored.reached, restored.lost)
        .with_record(RecordSize::new(self.settings.max_record_bytes));
        let slot = Slot::of_root(self.settings.subagents, &self.subagent_slots, &active.tenant);
        if let Some(progress) = &restored.progress {
            control.record().add_progress(progress);
            slot.count_ended(progress);
        }
        let RunSummary {
            run_id,
            session_id,
            started_at,
            ..
        } = live.summary();
        let control = Arc::new(control.with_beginning(started_at.filter(|_| live.is_resumed())));
        let _ = active.spending.set(Arc::clone(&control));
        Work {
            tenant: active.tenant.clone(),
            agent: Arc::clone(&plan.agent),
            agent_version: plan.agent_version,
            models: plan.models.clone(),
            tools: plan.tools.clone(),
            hooks: plan.agent.hooks.clone(),
            session_id,
            depth_left: plan.agent.max_depth,
            step_ceiling: plan.step_ceiling,
            control,
            events: Arc::clone(live) as _,
            relay: plan.request.events.subagents.then(|| Arc::clone(live) as _),
            depth: 0,
            variables: restored.environment.variables(),
            team: Arc::clone(&plan.team),
            slot,
            children: Children::default(),
            shapes: Arc::clone(&plan.shapes),
            call_seed: CallSeed::of_run(run_id),
            journal: restored.journal.take(),
            inbox: Some(Arc::clone(&active.inbox) as _),
        }
    }

    /// Makes the loop with the driver, the tools and the hooks that the agent names.
    pub(super) fn agent_loop(self: &Arc<Self>, work: &Arc<Work>) -> Result<AgentLoop, Failure> {
        let (agent, control, events) = (&work.agent, &work.control, &work.events);
        let compiler = agent.compiler.compiler(agent.traces);
        let stack = HookStack::default()
            .with_events(Arc::clone(events))
            .with_hook(GUARD_PRIORITY, Arc::new(CancellationHook::new(Arc::clone(control))))
            .with_hook(GUARD_PRIORITY, Arc::new(BudgetGuard::new(Arc::clone(control))))
            .with_hook(
                POLICY_PRIORITY,
                Arc::new(ErrorPolicyHook::new(agent.error_policy, Arc::clone(&self.ports.clock))),
            );
        let execution = ExecutionPorts {
            tenant: work.tenant.clone(),
            models: work.models.clone(),
            compiler: Arc::clone(&compiler),
            control: Arc::clone(control),
            ids: Arc::clone(&self.ports.ids),
            events: Arc::clone(events),
            request_room: self.model_room.clone(),
            stack: StackSlot::default(),
        };
        let hooks = self.ports.hooks.attach(stack, &work.hooks, &execution);
        let hooks = Arc::new(hooks.map_err(|error| Failure::hooks(&error))?);
        execution.stack.fill(&hooks);
        let tools = self.ports.tools.executor_with(&work.tools, self.subagent_tools(work));
        let ports = DriverPorts {
            tenant: work.tenant.clone(),
            models: work.models.clone(),
            parameters: Arc::new(agent.parameters.clone()),
            provider_tools: Arc::new(agent.provider_tools.clone()),
            tools: tools.map_err(|error| Failure::tools(&error))?,
            call_seed: work.call_seed.clone(),
            journal: work.journal.as_ref().map(|journal| Arc::clone(&journal.recorder)),
            parallel_tool_calls: agent.parallel_tool_calls,
            shapes: Arc::clone(&work.shapes),
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
        let (ids, events) = (Arc::clone(&self.ports.ids), Arc::clone(events));
        let agent_loop = AgentLoop::new(driver, hooks, events, Arc::clone(control), ids);
        let agent_loop = match &work.journal {
            Some(journal) => agent_loop.with_journal(Arc::clone(&journal.recorder)),
            None => agent_loop,
        };
        Ok(match &work.inbox {
            Some(inbox) => agent_loop.with_inbox(Arc::clone(inbox)),
            None => agent_loop,
        })
    }
}

/// What the session sets is in force, then the agent's own prompt; where it has none, the session's stays.
fn restore_state(plan: &RunPlan, live: &LiveEvents, bundle: Option<&Arc<Bundle>>) -> AgentState {
    let definition = &plan.agent;
    let state = match bundle {
        Some(bundle) => state_of(bundle, plan.session_metadata.clone()),
        // Whichever worker begins the run, it makes the same agent instance.
        None => {
            AgentState::new(plan.new_agent_id, live.summary().created_at).with_metadata(plan.session_metadata.clone())
        }
    };
    // A prompt that the session has set and sets no more is not its own.
    let was_set = prompt_of(state.context().overrides.as_deref()).is_some();
    let prompt = prompt_of(plan.overrides.as_deref());
    let state = match prompt {
        Some(prompt) => state.with_system_prompt(prompt.clone()),
        None if was_set || !definition.system_prompt.is_empty() => {
            state.with_system_prompt(definition.system_prompt.clone())
        }
        None => state,
    };
    state
        .with_response_format(plan.response_format.clone())
        .with_overrides(plan.overrides.clone())
}

fn prompt_of(overrides: Option<&Overrides>) -> Option<&String> {
    overrides?.system_prompt.as_ref()
}

fn state_of(bundle: &Bundle, metadata: Object) -> AgentState {
    let context = AgentContext {
        store: MessageStore::new(bundle.history.clone()),
        metadata,
        system_prompt: bundle.context.system_prompt.clone(),
        response_format: bundle.context.response_format.clone(),
        overrides: bundle.context.overrides.clone(),
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
