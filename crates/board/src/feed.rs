//! The changes of tenants: which runs, sessions and threads have changed, by their ids alone.
//!
//! Nothing is retained. A reader that may have missed a change gets an error instead of the next
//! one, and reads everything again. As long as nobody reads, a change costs a read of a counter.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use agent::record::{RunStatus, RunSummary, ThreadName};
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

/// The most changes of a tenant that wait for its slowest reader.
const MAX_WAITING: usize = 1_024;

/// A change of a tenant's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TenantChange {
    /// A run has a new status, or another process executes it.
    Run {
        /// The run.
        run_id: RunId,
        /// Its status.
        status: RunStatus,
        /// The session that it has published; `None` as long as there is none.
        session_id: Option<SessionId>,
        /// The thread that it is on.
        thread: Option<ThreadName>,
    },
    /// A request without a run has published a session.
    SessionPublished {
        /// The session.
        session_id: SessionId,
    },
    /// A caller has removed a session, perhaps with those that continue it.
    SessionRemoved {
        /// The session.
        session_id: SessionId,
    },
    /// A request without a run has created, moved or changed a thread.
    ThreadChanged {
        /// The thread.
        thread: ThreadName,
        /// The session that it points to; `None` for none yet.
        session_id: Option<SessionId>,
    },
    /// A thread was taken away.
    ThreadRemoved {
        /// The thread.
        thread: ThreadName,
    },
}

/// Why a reader gets no further changes. It may have missed some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChangesLost {
    /// The reader has read more slowly than changes came.
    #[error("the reader of changes lags")]
    Lag,
    /// A process could not reach the others, or did not know a change.
    #[error("changes may be lost")]
    Gap,
}

/// Reads the changes of a tenant.
#[derive(Debug)]
pub struct ChangeReader {
    // Dropped before the registration, which checks whether it was the last one.
    changes: Receiver<TenantChange>,
    _registration: Registration,
}

/// The readers of all tenants.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    tenants: Mutex<HashMap<TenantId, Sender<TenantChange>>>,
    /// The number of all readers.
    readers: AtomicUsize,
}

/// Counts a reader until it is dropped.
#[derive(Debug)]
struct Registration {
    feeds: Arc<Feeds>,
    tenant: TenantId,
}

impl TenantChange {
    /// Makes the change of a run that has a new status.
    pub fn of_run(run: &RunSummary) -> Self {
        Self::Run {
            run_id: run.run_id,
            status: run.status,
            session_id: run.has_session().then_some(run.session_id),
            thread: run.thread.clone(),
        }
    }
}

impl ChangeReader {
    /// Waits for the next change. After an error, the reader is of no further use.
    pub async fn next(&mut self) -> Result<TenantChange, ChangesLost> {
        self.changes.recv().await.map_err(|error| match error {
            RecvError::Lagged(_) => ChangesLost::Lag,
            RecvError::Closed => ChangesLost::Gap,
        })
    }
}

impl Feeds {
    /// Returns a reader of all changes of a tenant from now on.
    pub(super) fn subscribe(self: &Arc<Self>, tenant: &TenantId) -> ChangeReader {
        let mut tenants = self.tenants.lock();
        let sender = tenants.entry(tenant.clone());
        let changes = sender.or_insert_with(|| Sender::new(MAX_WAITING)).subscribe();
        self.readers.fetch_add(1, Ordering::SeqCst);
        ChangeReader {
            changes,
            _registration: Registration {
                feeds: Arc::clone(self),
                tenant: tenant.clone(),
            },
        }
    }

    /// Returns whether anybody reads changes.
    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    /// Sends a change to the readers of the tenant in this process.
    pub(super) fn publish(&self, tenant: &TenantId, change: &TenantChange) {
        if self.has_readers()
            && let Some(sender) = self.tenants.lock().get(tenant)
        {
            // Fails if the last reader is about to leave.
            let _ = sender.send(change.clone());
        }
    }

    /// Ends the changes of all readers, since some may be lost.
    pub(super) fn interrupt(&self) {
        self.tenants.lock().clear();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut tenants = self.feeds.tenants.lock();
        let is_unread = |sender: &Sender<TenantChange>| sender.receiver_count() == 0;
        if tenants.get(&self.tenant).is_some_and(is_unread) {
            tenants.remove(&self.tenant);
        }
        self.feeds.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use values::ids::UuidV7Source;

    fn removed() -> TenantChange {
        TenantChange::SessionRemoved {
            session_id: SessionId::generate(&UuidV7Source),
        }
    }

    #[test]
    fn readers_of_a_tenant_leave_nothing() {
        let (feeds, tenant) = (Arc::<Feeds>::default(), TenantId::anonymous());
        let change = removed();
        feeds.publish(&tenant, &change);
        assert!(!feeds.has_readers());
        let [mut first, mut second] = [(); 2].map(|()| feeds.subscribe(&tenant));
        feeds.publish(&tenant, &change);
        for reader in [&mut first, &mut second] {
            assert_eq!(reader.next().now_or_never(), Some(Ok(change.clone())));
            assert_eq!(reader.next().now_or_never(), None);
        }
        drop(first);
        assert!(feeds.has_readers() && feeds.tenants.lock().len() == 1);
        drop(second);
        assert!(!feeds.has_readers() && feeds.tenants.lock().is_empty());
    }

    #[test]
    fn a_reader_that_lags_gets_an_error_and_the_others_do_not() {
        let (feeds, tenant) = (Arc::<Feeds>::default(), TenantId::anonymous());
        let [mut slow, mut fast] = [(); 2].map(|()| feeds.subscribe(&tenant));
        for _ in 0..=MAX_WAITING {
            let change = removed();
            feeds.publish(&tenant, &change);
            assert_eq!(fast.next().now_or_never(), Some(Ok(change)));
        }
        assert_eq!(slow.next().now_or_never(), Some(Err(ChangesLost::Lag)));
    }

    #[test]
    fn an_outage_ends_the_readers_and_spares_those_that_come_later() {
        let (feeds, tenant) = (Arc::<Feeds>::default(), TenantId::anonymous());
        let mut early = feeds.subscribe(&tenant);
        feeds.interrupt();
        let mut late = feeds.subscribe(&tenant);
        assert_eq!(early.next().now_or_never(), Some(Err(ChangesLost::Gap)));
        drop(early);
        let change = removed();
        feeds.publish(&tenant, &change);
        assert_eq!(late.next().now_or_never(), Some(Ok(change)));
    }
}
