//! Limits the subagents below a run: in total, at the same time, and in this process.
//!
//! An execution that waits for subagents does no work, so it lends its slot to one of them. So each
//! chain of waiting executions ends in one that works, and there is no deadlock. The run's own
//! execution lends too, so every run can have one active subagent, however busy the process is.
//! Tenants share the slots of the process fairly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::agent::Progress;
use crate::agent::state::StepExecution;
use crate::fair_share::{FairShare, Share};
use crate::run::settings::SubagentSettings;
use crate::tenant::TenantId;

/// The slots that the agents below all runs of this process share.
#[derive(Debug)]
pub struct SubagentSlots {
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

/// The slot of an execution, for as long as it is held.
#[derive(Debug)]
pub(in crate::run) struct Slot {
    slots: Arc<Slots>,
    /// One permit, for one of the agents below.
    loan: Arc<Semaphore>,
    _held: Held,
}

/// Where a slot comes from; it is given back there.
#[derive(Debug)]
enum Held {
    /// The run's own execution has it.
    OfRoot,
    /// The execution above lends it.
    Lent { _loan: OwnedSemaphorePermit },
    /// It is the execution's own.
    Own {
        _of_run: OwnedSemaphorePermit,
        _of_process: Share,
    },
}

/// The run has had all of its subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the run has had all {max} agents that it may have; go on without")]
pub(super) struct NoneLeft {
    max: usize,
}

impl SubagentSlots {
    /// Makes as many slots as are configured.
    pub fn new(settings: SubagentSettings) -> Self {
        Self {
            settings,
            of_process: FairShare::new(settings.max_concurrent),
        }
    }

    /// Makes the slot of a run's own execution.
    pub(in crate::run) fn root(&self, tenant: &TenantId) -> Slot {
        let slots = Slots {
            // One more works in the slot that the run's own execution lends.
            of_run: Arc::new(Semaphore::new(self.settings.concurrency.saturating_sub(1))),
            of_process: Arc::clone(&self.of_process),
            tenant: tenant.clone(),
            begun: AtomicUsize::new(0),
            max_begun: self.settings.max,
        };
        Slot::new(Arc::new(slots), Held::OfRoot)
    }
}

impl Slot {
    fn new(slots: Arc<Slots>, held: Held) -> Self {
        Self {
            slots,
            loan: Arc::new(Semaphore::new(1)),
            _held: held,
        }
    }

    /// Counts an agent that is to begin below.
    pub(super) fn count_one(&self) -> Result<(), NoneLeft> {
        let max = self.slots.max_begun;
        let one_more = |begun: usize| (begun < max).then_some(begun + 1);
        let counted = self
            .slots
            .begun
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map(drop).map_err(|_| NoneLeft { max })
    }

    /// Counts the agents that have ended in another process below an execution.
    pub(in crate::run) fn count_ended(&self, progress: &Progress) {
        let ended = progress.ended_calls();
        let ended = ended.filter_map(|(_, _, execution)| execution.trace.subagent.as_deref());
        let count: usize = ended.map(|subagent| 1 + agents_in(&subagent.steps)).sum();
        self.slots.begun.fetch_add(count, Ordering::Relaxed);
    }

    /// Waits for a slot for an agent below; none when no semaphore is left, which never happens.
    pub(super) async fn below(&self) -> Option<Self> {
        let own = async {
            let of_run = Arc::clone(&self.slots.of_run).acquire_owned().await.ok()?;
            let of_process = self.slots.of_process.take(&self.slots.tenant, 1).await;
            Some(Held::Own {
                _of_run: of_run,
                _of_process: of_process,
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
