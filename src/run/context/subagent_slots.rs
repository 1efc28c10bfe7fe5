//! Limits the subagents below a run: in total, at the same time, and in this process.
//!
//! An execution that waits for subagents does no work, so it lends its slot to one of them. So each
//! chain of waiting executions ends in an active one, and there is no deadlock. The run's own
//! execution lends its slot, too. So every run can have one active subagent, even in a busy
//! process. Tenants share the slots of the process fairly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::settings::SubagentSettings;
use agent::journal::Progress;
use agent::state::StepExecution;
use tasks::fair_share::{FairShare, Share};
use values::tenant::TenantId;

/// The slots that the subagents of all runs of this process share.
#[derive(Debug)]
pub(in crate::run) struct SubagentSlots {
    settings: SubagentSettings,
    of_process: Arc<FairShare>,
}

/// The slots of a run.
#[derive(Debug)]
struct Slots {
    of_run: Arc<Semaphore>,
    of_process: Arc<FairShare>,
    tenant: TenantId,
    begun: AtomicUsize,
    max_begun: usize,
}

/// The slot of an execution, until it is dropped.
#[derive(Debug)]
pub(in crate::run) struct ExecutionSlot {
    slots: Arc<Slots>,
    /// The permit that this slot lends to one subagent.
    loan: Arc<Semaphore>,
    _held: Held,
}

/// The source of a slot, to which it returns.
#[derive(Debug)]
enum Held {
    /// The slot of the run's own execution.
    OfRoot,
    /// The parent execution lends its slot.
    Lent { _loan: OwnedSemaphorePermit },
    /// The slot comes from the run and the process.
    Own {
        _of_run: OwnedSemaphorePermit,
        _of_process: Share,
    },
}

/// The run has reached its limit of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the run has had all {max} agents that it may have; go on without")]
pub(in crate::run) struct NoneLeft {
    max: usize,
}

impl SubagentSlots {
    /// Creates the configured number of slots.
    pub(in crate::run) fn new(settings: SubagentSettings) -> Self {
        Self {
            settings,
            of_process: FairShare::new(settings.max_concurrent),
        }
    }

    /// Creates the slot of a run's own execution.
    pub(in crate::run) fn root(&self, tenant: &TenantId) -> ExecutionSlot {
        let slots = Slots {
            // One slot less, since another subagent uses the slot of the run's own execution.
            of_run: Arc::new(Semaphore::new(self.settings.concurrency.saturating_sub(1))),
            of_process: Arc::clone(&self.of_process),
            tenant: tenant.clone(),
            begun: AtomicUsize::new(0),
            max_begun: self.settings.max,
        };
        ExecutionSlot::new(Arc::new(slots), Held::OfRoot)
    }
}

impl ExecutionSlot {
    fn new(slots: Arc<Slots>, held: Held) -> Self {
        Self {
            slots,
            loan: Arc::new(Semaphore::new(1)),
            _held: held,
        }
    }

    /// Counts a new subagent.
    pub(in crate::run) fn count_one(&self) -> Result<(), NoneLeft> {
        let max = self.slots.max_begun;
        let one_more = |begun: usize| (begun < max).then_some(begun + 1);
        let counted = self
            .slots
            .begun
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map(drop).map_err(|_| NoneLeft { max })
    }

    /// Counts an execution's subagents that ended in another process.
    pub(in crate::run) fn count_ended(&self, progress: &Progress) {
        let ended = progress.ended_calls();
        let ended = ended.filter_map(|(_, _, execution)| execution.trace.subagent.as_deref());
        let count: usize = ended.map(|subagent| 1 + agents_in(&subagent.steps)).sum();
        self.slots.begun.fetch_add(count, Ordering::Relaxed);
    }

    /// Waits for a slot for a subagent. Returns `None` only if a semaphore is closed, which never
    /// happens.
    pub(in crate::run) async fn below(&self) -> Option<Self> {
        let own = async {
            let run_slot = Arc::clone(&self.slots.of_run).acquire_owned().await.ok()?;
            let process_slot = self.slots.of_process.take(&self.slots.tenant, 1).await;
            Some(Held::Own {
                _of_run: run_slot,
                _of_process: process_slot,
            })
        };
        let held = tokio::select! {
            biased;
            loan = Arc::clone(&self.loan).acquire_owned() => Held::Lent { _loan: loan.ok()? },
            own = own => own?,
        };
        Some(Self::new(Arc::clone(&self.slots), held))
    }
}

fn agents_in(steps: &[Arc<StepExecution>]) -> usize {
    let executions = steps.iter().flat_map(|done| &done.step.tool_executions);
    let agents = executions.filter_map(|execution| execution.trace.subagent.as_deref());
    agents.map(|agent| 1 + agents_in(&agent.steps)).sum()
}
