//! The story of an execute request, from its admission to the end of its run.
//!
//! ```text
//! start     admit ─ plan (agent, base bundle, model, tools) ─┬─ open (ids, board) ─▶ handle
//!                                                            └─ accept (queue) ─▶ handle
//! execute   restore (state, environment, progress) ─ agent loop ─ export ─ publish ─▶ record
//! conclude  terminal event ─ result ─ board ─ log
//! ```
//!
//! A queued run is leased by a worker, which performs and concludes it in the same way. Every
//! accepted run gets exactly one terminal event and one result, also if its task panics.
//!
//! An attempt can end without an end of the run: the lease is lost, the process shuts down, or the
//! store is unavailable. The attempt then returns `Performed::Left`, and another worker takes the
//! run over.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::admission::RunPlace;
use super::error::Refusal;
use super::handle::RunHandle;
use super::live::LiveEvents;
use super::outcome::{Failure, Outcome};
use super::plan::RunPlan;
use super::publish::Stored;
use super::request::RunRequest;
use super::service::RunService;
use super::subagents::restore_children;
use crate::record::RunRecord;
use crate::tenant::TenantId;

/// How this process is done with a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a run and never kept")]
pub(super) enum Performed {
    /// The run has ended.
    Ended(Outcome),
    /// Another worker goes on with it, or begins it anew.
    Left,
}

impl RunService {
    /// Begins a run, or puts it into the queue if it shall outlive this process.
    ///
    /// The run goes on by itself, and dropping the handle tells it that the caller went away. So does dropping the future before it resolves,
    /// unless nothing has happened yet.
    pub async fn start(self: &Arc<Self>, tenant: TenantId, request: RunRequest) -> Result<RunHandle, Refusal> {
        if let Some(key) = &request.idempotency
            && let Some(handle) = self.replay(&tenant, key).await?
        {
            return Ok(handle);
        }
        let permit = if request.asks_for_queue() {
            None
        } else {
            Some(self.admit(&tenant)?)
        };
        // What planning takes is not held while the run is at work.
        let plan = Box::pin(self.plan(&tenant, request)).await?;
        let Some(permit) = permit.filter(|_| !plan.is_queued()) else {
            return self.accept(plan).await;
        };
        let (handle, live) = self.open(&plan).await?;
        // What a task holds is copied each time that its stage changes.
        self.tasks.spawn(Box::pin(Arc::clone(self).execute(plan, live, permit)));
        Ok(handle)
    }

    /// Runs the plan to its end: exactly one terminal event and one result, whatever happens.
    async fn execute(self: Arc<Self>, plan: RunPlan, live: LiveEvents, place: RunPlace) {
        let live = Arc::new(live);
        live.tell_started();
        let performed = self.perform_safely(&plan, &live).await;
        self.conclude(&live, performed, Some(place)).await;
    }

    /// Performs the run; a fault of ours fails it.
    pub(super) async fn perform_safely(self: &Arc<Self>, plan: &RunPlan, live: &Arc<LiveEvents>) -> Performed {
        let performed = AssertUnwindSafe(self.perform(plan, live)).catch_unwind().await;
        performed.unwrap_or_else(|_| Performed::Ended(Outcome::failed(live, &Failure::panicked())))
    }

    /// Restores, runs the loop, exports and publishes.
    async fn perform(self: &Arc<Self>, plan: &RunPlan, live: &Arc<LiveEvents>) -> Performed {
        let mut restored = match self.restore(plan, live).await {
            Ok(restored) => restored,
            Err(_) if live.active.is_lost() => return Performed::Left,
            Err(failure) => return Performed::Ended(Outcome::failed(live, &failure)),
        };
        let work = Arc::new(self.work(plan, live, &mut restored));
        let agent_loop = match self.agent_loop(&work) {
            Ok(agent_loop) => agent_loop,
            Err(failure) => return Performed::Ended(Outcome::failed(live, &failure)),
        };
        let found = restored
            .progress
            .as_ref()
            .map(|progress| restore_children(&work, progress));
        if let Some(Err(error)) = found {
            return Performed::Ended(Outcome::failed(live, &Failure::progress(&error)));
        }
        let mut running = Box::pin(async {
            match restored.progress {
                Some(progress) => agent_loop.resume(progress.state, progress.pending).await,
                None => agent_loop.run(restored.state, plan.input.clone()).await,
            }
        });
        let state = tokio::select! {
            biased;
            () = live.active.departed() => {
                // Before the execution is dropped: it has not ended, so nobody may hear that.
                live.leave(live.active.is_lost());
                return Performed::Left;
            }
            state = &mut running => state,
        };
        let history = state.store().history();
        let is_held = |id| history.iter().any(|message| message.id == id);
        live.active.inbox.settle(is_held);
        // A paused execution goes on elsewhere; one whose lease is lost may not publish what it has.
        if state.has_active_execution() || live.active.is_lost() {
            return Performed::Left;
        }
        let ended = Outcome::of_execution(live, &state);
        if !ended.publishes(&live.active.cancellation) {
            return Performed::Ended(ended.unpublished(&live.active.cancellation));
        }
        let children = work.children.take();
        match self
            .export(plan, &ended.record.summary, state, children, &*restored.environment)
            .await
        {
            // Not held by the many runs that are still at work.
            Ok(exported) => Box::pin(self.publish(plan, live, exported, ended)).await,
            Err(failure) => Performed::Ended(ended.failing(&failure)),
        }
    }

    /// Tells the end: to the store unless the commit has, to the board, to those who follow and to the caller, and to the log. A run that
    /// was left is given back to the queue, unless another worker has it already.
    pub(super) async fn conclude(&self, live: &LiveEvents, performed: Performed, place: Option<RunPlace>) {
        let stored = match performed {
            Performed::Ended(outcome) => self.store_outcome(live, outcome).await,
            Performed::Left => Stored::Elsewhere,
        };
        let Stored::Here { outcome, is_stored } = stored else {
            return self.leave(live).await;
        };
        let record = Arc::new(outcome.record);
        log_end(&live.active.tenant, &record);
        live.end(&record, place);
        if !is_stored {
            self.store_record_later(live, &record, &outcome.steps).await;
        }
        if live.active.webhook.is_some() {
            self.ports.outbox.notify_one();
        }
        self.ports.board.run_close(&live.active.tenant, record.summary.run_id);
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
