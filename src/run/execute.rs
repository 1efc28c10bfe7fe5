//! The path of an execute request, from its arrival to the end of its run.
//!
//! ```text
//! start     plan (agent, base bundle, model, tools) ─┬─ a light slot, open (run_id, session_id, board) ─▶ handle
//!                                                    └─ accept (the queue) ─▶ handle      … a worker leases it
//! execute   perform: restore (state, environment, progress) ─ agent loop ─ export ─ publish (one transaction)
//!           conclude: terminal event, result, board, log
//! ```
//!
//! All checks that may refuse a request happen before a run opens. `queue/attempt.rs` executes a
//! queued run with the same two steps.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::active::{ActiveRun, ActiveRuns};
use super::base::refuse_continued;
use super::error::Refusal;
use super::executor::Executor;
use super::handle::{Callers, OnDeparture, ResultSource, RunHandle};
use super::live::LiveEvents;
use super::plan::{Planner, RunPlan};
use super::queue::RunQueue;
use super::request::RunRequest;
use super::run_slots::{LightSlots, RunSlot};
use super::span::run_span;
use super::tasks::RunTasks;
use agent::record::RunStatus;
use board::{Board, LiveRun};
use store::Store;
use store::sessions::ConflictPolicy;
use values::clock::Clock;
use values::tenant::TenantId;

/// Starts runs.
#[derive(Debug)]
pub struct RunStarter {
    /// Plans runs, and refuses invalid requests.
    pub planner: Arc<Planner>,
    /// Accepts runs into the queue, where they outlive this process.
    pub queue: Arc<RunQueue>,
    /// Slots for light runs, which exist in this process only.
    pub slots: Arc<LightSlots>,
    /// Executes light runs.
    pub executor: Arc<Executor>,
    /// Creates the handles of callers.
    pub callers: Arc<Callers>,
    /// Knows whether another session already continues the base.
    pub store: Arc<dyn Store>,
    /// Shows live runs.
    pub board: Arc<Board>,
    /// The active runs of this process.
    pub active: Arc<ActiveRuns>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Runs tasks that continue after their callers disconnect.
    pub tasks: RunTasks,
}

impl RunStarter {
    /// Begins a run, or puts it into the queue if it must outlive this process.
    ///
    /// The run continues on its own. A dropped handle counts as the disconnection of its caller. So
    /// does a future that is dropped before it resolves, if the run has already begun.
    pub async fn start(self: &Arc<Self>, tenant: TenantId, request: RunRequest) -> Result<RunHandle, Refusal> {
        if let Some(key) = &request.idempotency
            && let Some(handle) = self.queue.replay(&tenant, key).await?
        {
            return Ok(handle);
        }
        let reserved = if request.asks_for_queue() {
            None
        } else {
            Some(self.slots.reserve(&tenant).await)
        };
        // Boxed, so that the large future of the plan is freed while the run is active.
        let plan = Box::pin(self.planner.plan(&tenant, request)).await?;
        // Only the plan shows whether the agent requires a queued run. A queued run needs no slot
        // here.
        let Some(reserved) = reserved.filter(|_| !plan.is_queued()) else {
            return self.queue.accept(plan).await;
        };
        let slot = reserved.map_err(|turn| turn.refusal)?;
        let (handle, live) = self.open(&plan).await?;
        // Boxed, since the runtime copies the future of a task when the task changes its stage.
        let span = live.active.span.clone();
        let executing = Box::pin(Arc::clone(self).execute(plan, live, slot).instrument(span));
        self.tasks.runs.spawn(executing);
        Ok(handle)
    }

    /// Reserves the ids of the run and its session, and shows the run on the board.
    async fn open(&self, plan: &RunPlan) -> Result<(RunHandle, Arc<LiveEvents>), Refusal> {
        let exclusive = plan.request.conflict == ConflictPolicy::Reject;
        if exclusive {
            refuse_continued(&*self.store, &plan.tenant, &plan.base).await?;
        }
        let summary = self.planner.begun_summary(plan, RunStatus::Running);
        let run = LiveRun::begun(summary.clone());
        let opening = self.board.run_open(&plan.tenant, Arc::new(run.clone()), exclusive);
        if let Err(rival) = opening.await {
            return Err(Refusal::Conflict { run_id: Some(rival) });
        }
        let request_id = plan.request.request_id.as_deref();
        let active = ActiveRun::new(
            plan.tenant.clone(),
            summary.run_id,
            &self.tasks.cancellation,
            plan.request.webhook.clone(),
            None,
            run_span(&plan.tenant, summary.run_id, summary.attempts, request_id),
        );
        let at_work = self.active.add(&active);
        let end = |control| OnDeparture::EndHere(Arc::clone(&active), control);
        let departure = OnDeparture::of(plan.request.on_disconnect, end);
        let (sender, result) = oneshot::channel();
        let handle = self.callers.handle(&plan.tenant, summary, departure);
        let (board, clock) = (Arc::clone(&self.board), Arc::clone(&self.clock));
        let live = LiveEvents::new(active, at_work, run, board, clock).with_result(Some(sender));
        Ok((handle.with_result(ResultSource::Task(result)), Arc::new(live)))
    }

    /// Executes the plan to its end. Emits exactly one terminal event and one result, also after a
    /// panic.
    async fn execute(self: Arc<Self>, plan: RunPlan, live: Arc<LiveEvents>, slot: RunSlot) {
        let mut slot = Some(slot);
        live.emit_started();
        let performed = self.executor.perform_safely(&plan, &live).await;
        // Only a queued run can be left to another worker, so this light run has ended.
        Box::pin(self.executor.conclude(&live, performed, &mut slot)).await;
    }
}
