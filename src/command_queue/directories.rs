//! The directories of executions between two of their commands. The next command of the execution
//! finds its files there, and the temporary ones.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use values::ids::ExecutionId;
use values::tenant::TenantId;
use workspace::Tree;
use workspace::checkout::Checkout;

/// How long a directory waits for the next command of its execution.
const IDLE: Duration = Duration::from_mins(10);

/// The directory of an execution.
#[derive(Debug)]
struct Held {
    tenant: TenantId,
    execution_id: ExecutionId,
    checkout: Checkout,
    /// The saved files of the directory.
    saved: Tree,
    since: Instant,
}

/// The directories of executions, the oldest first.
#[derive(Debug)]
pub(super) struct Directories {
    held: Mutex<Vec<Held>>,
    /// The most directories.
    capacity: usize,
}

impl Directories {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            held: Mutex::default(),
            capacity,
        }
    }

    /// Takes the directory of an execution, if it is here.
    pub(super) async fn take(&self, tenant: &TenantId, execution_id: ExecutionId) -> Option<Checkout> {
        let held = {
            let mut all = self.held.lock();
            let index = all
                .iter()
                .position(|held| held.execution_id == execution_id && held.tenant == *tenant)?;
            all.remove(index)
        };
        held.up_to_date().await
    }

    /// Holds the directory of an execution, whose files are saved as a tree.
    pub(super) async fn put(&self, execution_id: ExecutionId, checkout: Checkout, saved: Tree) {
        let surplus = {
            let mut all = self.held.lock();
            all.push(Held {
                tenant: saved.tenant().clone(),
                execution_id,
                checkout,
                saved,
                since: Instant::now(),
            });
            (all.len() > self.capacity).then(|| all.remove(0))
        };
        release(surplus).await;
    }

    /// Gives up the directories of executions that have run no command for a while. Each is
    /// retained for the next run of its line.
    pub(super) async fn release_idle(&self) {
        let idle: Vec<_> = {
            let mut all = self.held.lock();
            all.extract_if(.., |held| held.since.elapsed() > IDLE).collect()
        };
        release(idle).await;
    }
}

async fn release(all: impl IntoIterator<Item = Held>) {
    for held in all {
        drop(held.up_to_date().await);
    }
}

impl Held {
    /// Returns the directory with the saved tree as its state. An unusable one is removed.
    async fn up_to_date(mut self) -> Option<Checkout> {
        match self.checkout.update(&self.saved).await {
            Ok(()) => Some(self.checkout),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the directory of an execution can't be used again"
                );
                None
            }
        }
    }
}
