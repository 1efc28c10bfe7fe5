//! The executor: restores a planned run, runs its agent loop, exports and publishes the session,
//! and concludes the run.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::agent_loop::AgentLoops;
use super::export::export;
use super::failure::Failure;
use super::live::LiveEvents;
use super::outcome::{Outcome, Performed};
use super::plan::RunPlan;
use super::publish::{Publisher, Stored};
use super::restore::{Restored, Surroundings, restore};
use super::run_slots::RunSlot;
use super::served_tools::ServedTools;
use super::subagents::{Children, SubagentSlots, restore_children};
use super::work::{LoopFactory as _, Work, with_own_approvals};
use agent::ports::ToolServers;
use agent::record::{RunRecord, RunSummary};
use agent::state::AgentState;
use agent::{AgentLoop, CallSeed, ExecutionControl, Progress, RecordSize};
use board::Board;
use store::Store;
use values::clock::Clock;
use values::ids::IdSource;
use values::tenant::TenantId;
use workspace::WorkspaceLimits;

/// Executes planned runs.
#[derive(Debug)]
pub struct Executor {
    /// The limits of workspaces.
    pub workspace: WorkspaceLimits,
    /// Stores the journals of runs, and the files of workspaces.
    pub store: Arc<dyn Store>,
    /// Creates the loops of agents.
    pub loops: Arc<AgentLoops>,
    /// Finds the tools of MCP servers.
    pub servers: Arc<dyn ToolServers>,
    /// Slots for subagents.
    pub subagents: SubagentSlots,
    /// Stores the ends of runs.
    pub publisher: Publisher,
    /// Shows live runs.
    pub board: Arc<Board>,
    /// Notified when messages for webhooks were stored.
    pub outbox: Arc<Notify>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Creates ids.
    pub ids: Arc<dyn IdSource>,
    /// The most bytes of the record of one run, including its steps and those of its subagents.
    pub max_record_bytes: u64,
}

/// The point at which the execution begins or continues.
struct Begun {
    state: AgentState,
    /// The progress of an earlier worker.
    progress: Option<Progress>,
}

impl Begun {
    /// Runs the loop from this point to the end of the execution.
    fn run<'a>(self, agent_loop: &'a AgentLoop, plan: &'a RunPlan) -> BoxFuture<'a, AgentState> {
        match (self.progress, &plan.answered) {
            (Some(progress), _) => Box::pin(agent_loop.resume(progress.state, progress.pending)),
            (None, Some(answered)) => {
                Box::pin(agent_loop.answer(self.state, plan.input.clone(), answered.step.clone()))
            }
            (None, None) => Box::pin(agent_loop.run(self.state, plan.input.clone())),
        }
    }
}

impl Executor {
    /// Performs the run. A panic fails the run.
    pub(super) async fn perform_safely(&self, plan: &RunPlan, live: &Arc<LiveEvents>) -> Performed {
        let performed = AssertUnwindSafe(self.perform(plan, live)).catch_unwind().await;
        performed.unwrap_or_else(|_| Performed::Ended(Outcome::failed(live, Failure::panicked())))
    }

    /// Restores, runs the loop, exports and publishes.
    ///
    /// Each phase is boxed. Otherwise a run would hold the memory of its largest phase, the
    /// publication, for as long as the model works.
    async fn perform(&self, plan: &RunPlan, live: &Arc<LiveEvents>) -> Performed {
        let mut executing = pin!(self.execute(plan, live));
        let executed = tokio::select! {
            biased;
            () = live.active.departed() => {
                // Called before the execution is dropped. It has not ended, so no event may report
                // an end.
                live.leave();
                return Performed::Left;
            }
            executed = &mut executing => executed,
        };
        match executed {
            Ok((work, state)) => Box::pin(self.end(plan, live, &work, state)).await,
            Err(performed) => performed,
        }
    }

    /// Restores the run and runs its loop.
    async fn execute(&self, plan: &RunPlan, live: &Arc<LiveEvents>) -> Result<(Arc<Work>, AgentState), Performed> {
        let (begun, work, agent_loop) = Box::pin(self.begin(plan, live)).await?;
        let state = begun.run(&agent_loop, plan).await;
        Ok((work, state))
    }

    /// Restores the run and creates its loop.
    async fn begin(&self, plan: &RunPlan, live: &Arc<LiveEvents>) -> Result<(Begun, Arc<Work>, AgentLoop), Performed> {
        let failed = |failure| Performed::Ended(Outcome::failed(live, failure));
        let surroundings = Surroundings {
            limits: self.workspace,
            clock: &self.clock,
            store: &self.store,
            patience: self.publisher.patience(&live.active),
        };
        let mut restored = match restore(surroundings, plan, live).await {
            Ok(restored) => restored,
            Err(_) if live.active.is_lost() => return Err(Performed::Left),
            Err(failure) => return Err(failed(failure)),
        };
        let work = Arc::new(self.work(plan, live, &mut restored).await);
        let agent_loop = Arc::clone(&self.loops).agent_loop(&work).map_err(failed)?;
        let Restored { state, progress, .. } = restored;
        if let Some(progress) = &progress {
            restore_children(&work, progress).map_err(|error| failed(Failure::progress(&error)))?;
        }
        Ok((Begun { state, progress }, work, agent_loop))
    }

    /// Ends an execution: exports its state and publishes the session.
    async fn end(&self, plan: &RunPlan, live: &Arc<LiveEvents>, work: &Work, state: AgentState) -> Performed {
        // No process of the run outlives it, however it ends.
        work.environment.jobs().stop().await;
        let history = state.store().history();
        let is_held = |id| history.iter().any(|message| message.id == id);
        live.active.inbox.apply_held(is_held);
        // A paused execution continues in another process. After the lease is lost, nothing may be
        // published here.
        if state.has_active_execution() || live.active.is_lost() {
            return Performed::Left;
        }
        let ended = Outcome::of_execution(live, &state);
        if !ended.publishes(&live.active.cancellation) {
            return Performed::Ended(ended.unpublished(&live.active.cancellation));
        }
        let children = work.children.take();
        let (environment, summary) = (&*work.environment, &ended.record.summary);
        match export(&*self.ids, plan, summary, state, children, environment).await {
            Ok(exported) => self.publisher.publish(plan, live, exported, ended).await,
            Err(_) if live.active.is_lost() => Performed::Left,
            Err(failure) => Performed::Ended(ended.failing(failure)),
        }
    }

    /// Creates the work of the run's own agent, which has no parent agent.
    async fn work(&self, plan: &RunPlan, live: &Arc<LiveEvents>, restored: &mut Restored) -> Work {
        let active = &live.active;
        let state = match &mut restored.progress {
            Some(progress) => &mut progress.state,
            None => &mut restored.state,
        };
        let pins = state.context().tool_pins.clone();
        let served = ServedTools::find(&*self.servers, plan, pins, &active.cancellation, &**live).await;
        if !plan.agent.mcp.is_empty() {
            *state = state.clone().with_tool_pins(served.pins().clone());
        }
        let control = ExecutionControl::new(
            plan.budget.clone(),
            active.cancellation.clone(),
            Arc::clone(&self.clock),
        )
        .with_stop(active.stop.clone())
        .with_pause(active.pause())
        .with_spent(restored.reached, restored.lost)
        .with_record(RecordSize::new(self.max_record_bytes));
        let slot = self.subagents.root(&active.tenant);
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
            client_tools: Arc::clone(&plan.client_tools),
            served,
            approvals: with_own_approvals(&[], &plan.agent),
            hooks: plan.agent.hooks.clone(),
            session_id,
            depth_left: plan.agent.max_depth,
            step_ceiling: plan.step_ceiling,
            control,
            events: Arc::clone(live) as _,
            relay: plan.request.events.subagents.then(|| Arc::clone(live) as _),
            depth: 0,
            environment: Arc::clone(&restored.environment),
            team: Arc::clone(&plan.team),
            slot,
            children: Children::default(),
            formats: Arc::clone(&plan.formats),
            call_seed: CallSeed::of_run(run_id),
            journal: restored.journal.take(),
            inbox: Some(Arc::clone(&active.inbox) as _),
        }
    }

    /// Ends the run: stores its record unless the commit did, updates the board, notifies followers
    /// and the caller, and logs the end. Returns `false` for a run that this process leaves to
    /// another worker.
    pub(super) async fn conclude(&self, live: &LiveEvents, performed: Performed, slot: &mut Option<RunSlot>) -> bool {
        let stored = match performed {
            Performed::Ended(outcome) => self.publisher.store_outcome(live, outcome).await,
            Performed::Left => Stored::ByOtherWorker,
        };
        let Stored::Here { outcome, is_stored } = stored else {
            return false;
        };
        let record = Arc::new(outcome.record);
        log_end(&live.active.tenant, &record);
        live.end(&record, slot.take());
        if !is_stored {
            self.publisher.store_record_later(live, &record, &outcome.steps).await;
        }
        if live.active.webhook.is_some() {
            self.outbox.notify_one();
        }
        self.board.run_close(&live.active.tenant, record.summary.run_id);
        true
    }
}

fn log_end(tenant: &TenantId, record: &RunRecord) {
    let summary = &record.summary;
    tracing::info!(
        run_id = %summary.run_id,
        session_id = %summary.session_id,
        %tenant,
        agent = summary.agent,
        model = %summary.model,
        status = %summary.status,
        steps = summary.step_count,
        total_tokens = summary.usage.total_tokens,
        error = summary.error.as_ref().map(|error| error.code.as_str()),
        "run ended"
    );
}
