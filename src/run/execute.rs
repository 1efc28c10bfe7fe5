//! The story of an execute request, from its admission to the end of its run.
//!
//! ```text
//! start     admit ─ plan (agent, base bundle, model, tools) ─ open (run_id, session_id, board) ─▶ handle
//! execute   restore (state, environment) ─ agent loop ─ export ─ publish (one transaction) ─▶ record
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::OwnedSemaphorePermit;

use super::error::Refusal;
use super::handle::RunHandle;
use super::live::LiveEvents;
use super::outcome::{Failure, Outcome};
use super::plan::RunPlan;
use super::request::RunRequest;
use super::service::RunService;
use crate::record::{RunEventPayload, RunRecord};
use crate::tenant::TenantId;

impl RunService {
    /// Begins a run.
    ///
    /// Nothing has happened when the future is dropped before it resolves; afterwards the run goes on by itself, and dropping the
    /// handle tells it that the caller went away.
    pub async fn start(self: &Arc<Self>, tenant: TenantId, request: RunRequest) -> Result<RunHandle, Refusal> {
        let permit = self.admit()?;
        let plan = self.plan(&tenant, request).await?;
        let (handle, live) = self.open(&tenant, &plan).await?;
        self.tasks.spawn(Arc::clone(self).execute(plan, live, permit));
        Ok(handle)
    }

    /// Runs the plan to its end: exactly one terminal event and one result, whatever happens.
    async fn execute(self: Arc<Self>, plan: RunPlan, live: LiveEvents, permit: OwnedSemaphorePermit) {
        let live = Arc::new(live);
        live.tell(RunEventPayload::Started(Box::new(live.summary())));
        let performed = AssertUnwindSafe(self.perform(&plan, &live)).catch_unwind().await;
        let outcome = performed.unwrap_or_else(|_| Outcome::failed(&live, &Failure::panicked()));
        self.conclude(&plan, &live, outcome, permit).await;
    }

    /// Restores, runs the loop, exports and publishes.
    async fn perform(self: &Arc<Self>, plan: &RunPlan, live: &Arc<LiveEvents>) -> Outcome {
        let restored = match self.restore(plan).await {
            Ok(restored) => restored,
            Err(failure) => return Outcome::failed(live, &failure),
        };
        let work = Arc::new(self.work(plan, live, &restored));
        let agent_loop = match self.agent_loop(&work) {
            Ok(agent_loop) => agent_loop,
            Err(failure) => return Outcome::failed(live, &failure),
        };
        let state = agent_loop.run(restored.state, plan.input.clone()).await;
        let ended = Outcome::of_execution(live, &state);
        if !ended.publishes(&live.cancellation) {
            return ended.unpublished(&live.cancellation);
        }
        let children = work.children.take();
        match self.export(plan, live, state, children, &*restored.environment).await {
            Ok(exported) => self.publish(plan, live, exported, ended).await,
            Err(failure) => ended.failing(&failure),
        }
    }

    /// Tells the end: to the store unless the commit has, to the board, to the stream and to the caller, and to the log.
    async fn conclude(&self, plan: &RunPlan, live: &LiveEvents, outcome: Outcome, permit: OwnedSemaphorePermit) {
        let (outcome, stored) = self.store_outcome(plan, live, outcome).await;
        let record = Arc::new(outcome.record);
        log_end(&plan.tenant, &record);
        live.end(&record, Some(permit));
        if !stored {
            self.store_record_later(plan, &record, &outcome.steps).await;
        }
        self.ports.board.run_close(&plan.tenant, record.summary.run_id);
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
