//! The records of runs as traits: reads, and the end of a run without a session.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::StoreError;
use super::query::{Page, TimeRange};
use super::queue::Lease;
use agent::record::{Creator, NewDelivery, RunEvent, RunRecord, RunStatus, RunSummary, StepRecord, ThreadName};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::Object;
use values::model_ref::ModelRef;
use values::tenant::TenantId;
use values::usage::Usage;

/// Reads runs.
#[async_trait]
pub trait RunReader: Send + Sync + fmt::Debug {
    /// Reads a run with its output.
    async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Finds the run that has reserved the session id.
    async fn run_lookup_by_session(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<RunSummary>, StoreError>;

    /// Finds the run whose open calls a run answers.
    async fn run_lookup_by_answer(&self, tenant: &TenantId, by: RunId) -> Result<Option<RunSummary>, StoreError>;

    /// Sums the usage of ended runs.
    async fn usage_sum(&self, tenant: &TenantId, query: &UsageQuery) -> Result<Vec<UsageSum>, StoreError>;

    /// Lists runs without their outputs, newest first.
    async fn run_list(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<RunSummary>, StoreError>;

    /// Counts waiting runs, up to `most`.
    async fn waiting_count(&self, tenant: &TenantId, filter: &WaitingFilter, most: u32) -> Result<u32, StoreError>;

    /// Lists waiting runs, newest first, each with the size as JSON of its output in bytes. Does
    /// not read the outputs.
    async fn waiting_sizes(
        &self,
        tenant: &TenantId,
        filter: &WaitingFilter,
        page: Page<RunId>,
    ) -> Result<Vec<(RunId, u64)>, StoreError>;

    /// Reads those of the given runs that wait, newest first, with their open calls and without the
    /// rest of their outputs.
    async fn waiting_list(&self, tenant: &TenantId, run_ids: &[RunId]) -> Result<Vec<RunRecord>, StoreError>;

    /// Returns the size as JSON in bytes of a run's steps, and of the messages that its session and
    /// its subagents' sessions added. Does not read them. Returns 0 if the run does not exist.
    async fn steps_size(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError>;

    /// Reads the steps of a run as they were stored.
    async fn step_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<Vec<StepRecord>>, StoreError> {
        let page = self.step_page(tenant, run_id, 0..u64::MAX).await?;
        Ok(page.map(|page| page.steps))
    }

    /// Reads steps of a run by their index, as they were stored. Leaves out indexes that the run
    /// does not have.
    async fn step_page(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        indexes: Range<u64>,
    ) -> Result<Option<StepPage>, StoreError>;
}

/// Some steps of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepPage {
    /// The steps, in their order.
    pub steps: Vec<StepRecord>,
    /// The number of all steps of the run.
    pub total: u64,
}

/// Writes the ends of runs that publish no session, and hides runs.
#[async_trait]
pub trait RunWriter: Send + Sync + fmt::Debug {
    /// Stores the end of a run that failed or was cancelled, with its events and webhooks. A run
    /// with a lease leaves the queue.
    ///
    /// A run whose end is recorded can't publish a session afterwards.
    async fn run_record(&self, tenant: &TenantId, end: &RunEnd) -> Result<Recorded, StoreError>;

    /// Marks a run as hidden, which its record shows. Returns `false` if the run is not stored. May
    /// be repeated.
    async fn run_hide(&self, tenant: &TenantId, run_id: RunId) -> Result<bool, StoreError>;
}

/// The runs that a list shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    /// Only of one of these statuses, each given once. If there are none, of any status.
    pub statuses: Vec<RunStatus>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only runs whose preferred model is this one.
    pub model: Option<ModelRef>,
    /// Only with all of these key-value pairs at the top of their metadata.
    pub metadata: Object,
    /// Only from this base.
    pub base_session_id: Option<SessionId>,
    /// Only on this thread.
    pub thread: Option<ThreadName>,
    /// Only made in this range.
    pub created: TimeRange,
}

/// The waiting runs that a list shows: those with an open call that has not expired.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingFilter {
    /// Who answers that call.
    pub answerer: Answerer,
    /// The time at which it has not expired.
    pub now: Timestamp,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only on this thread.
    pub thread: Option<ThreadName>,
}

/// Who answers an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// A person, who decides about the call or gives input for it.
    Person,
    /// The caller's program, which executes the tool.
    Client,
}

/// The runs whose usage is summed, and how the sums are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    /// The spans of time in which the runs were made, at least one: the name of the span, its
    /// beginning and its end.
    pub spans: Vec<(String, Timestamp, Timestamp)>,
    /// Whether each agent has a sum of its own.
    pub by_agent: bool,
    /// Whether each model has one.
    pub by_model: bool,
    /// Whether each caller has one.
    pub by_creator: bool,
    /// The most sums.
    pub limit: u32,
}

/// The sum of the usage of some runs.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageSum {
    /// The name of the span.
    pub span: String,
    /// The agent; empty if agents are summed.
    pub agent: String,
    /// The model that answered last; empty if models are summed.
    pub model: String,
    /// The caller; `None` if callers are summed, and for runs without one.
    pub created_by: Option<Creator>,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs of whose cost a part is not known.
    pub cost_unknown_runs: u64,
    /// The tokens, with the known part of the cost.
    pub usage: Usage,
}

/// The end of a run: everything that its last transaction writes.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// The final record.
    pub record: RunRecord,
    /// The steps.
    pub steps: Vec<StepRecord>,
    /// The lease under which it ended; `None` for a run that was never in the queue.
    pub lease: Option<Lease>,
    /// The events that are not stored yet. Excludes the last ones, which readers derive from the
    /// record and the session.
    pub events: Vec<Arc<RunEvent>>,
    /// The keys of the messages that were applied but are not marked yet. All other waiting
    /// messages are too late.
    pub applied: Vec<String>,
    /// The webhooks to send.
    pub deliveries: Vec<NewDelivery>,
    /// Whether the run has reserved spending, which its end settles.
    pub is_metered: bool,
}

/// The result of recording the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The end is stored.
    Now,
    /// The run had already ended: an earlier call recorded it, or a commit whose response was lost.
    Before,
    /// Another worker has the lease. Nothing is stored.
    LeaseLost,
}
