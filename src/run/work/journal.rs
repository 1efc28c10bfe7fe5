//! The journal of a run's executions, persisted under its lease. An entry that can't be persisted
//! ends the execution.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use crate::run::context::{ActiveRun, HeldLease};
use agent::journal::{Journal, JournalEntry, JournalError, Journals};
use store::queue::{JournalRecord, Lease};
use store::{Store, StoreError};

/// Persists the entries of all executions of a run, in one order.
#[derive(Debug)]
pub(in crate::run) struct RunJournal {
    store: Arc<dyn Store>,
    active: Arc<ActiveRun>,
    /// The entries of earlier workers, by execution.
    earlier: BTreeMap<String, Vec<JournalEntry>>,
    /// The number of the last entry. Locked while entries are persisted.
    last: Arc<Mutex<u64>>,
}

/// Persists the entries of one execution.
#[derive(Debug)]
struct ScopedJournal {
    store: Arc<dyn Store>,
    active: Arc<ActiveRun>,
    last: Arc<Mutex<u64>>,
    scope: String,
}

/// Reads the entries of earlier workers, if there were any. New entries follow them.
pub(in crate::run) async fn read_journal(
    store: &Arc<dyn Store>,
    active: &Arc<ActiveRun>,
) -> Result<RunJournal, StoreError> {
    let records = if active.lease().is_some_and(Lease::is_first) {
        Vec::new()
    } else {
        let read = || store.journal_read(&active.tenant, active.run_id);
        let is_retried = |error: &StoreError| error.is_transient() && !active.is_lost();
        read.retry(backoff()).when(is_retried).await?
    };
    let last = records.last().map_or(0, |record| record.sequence);
    let mut earlier: BTreeMap<String, Vec<JournalEntry>> = BTreeMap::new();
    for record in records {
        earlier.entry(record.scope).or_default().push(record.entry);
    }
    Ok(RunJournal {
        store: Arc::clone(store),
        active: Arc::clone(active),
        earlier,
        last: Arc::new(Mutex::new(last)),
    })
}

impl Journals for RunJournal {
    fn scope(&self, scope: &str) -> Arc<dyn Journal> {
        Arc::new(ScopedJournal {
            store: Arc::clone(&self.store),
            active: Arc::clone(&self.active),
            last: Arc::clone(&self.last),
            scope: scope.to_owned(),
        })
    }

    fn entries(&self, scope: &str) -> Vec<JournalEntry> {
        self.earlier.get(scope).cloned().unwrap_or_default()
    }
}

impl Journal for ScopedJournal {
    fn append(&self, entries: Vec<JournalEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let held = self.active.held_lease.as_ref().ok_or(JournalError::Superseded)?;
            self.persist(held, entries).await
        })
    }
}

impl ScopedJournal {
    async fn persist(&self, held: &HeldLease, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        let mut last = self.last.lock().await;
        let numbered = entries.into_iter().zip(*last + 1..);
        let records: Vec<_> = numbered
            .map(|(entry, sequence)| JournalRecord {
                sequence,
                scope: self.scope.clone(),
                tree: entry.tree(),
                entry,
            })
            .collect();
        let events = held.unpersisted();
        let append = || self.store.progress_append(&held.lease, &records, &events);
        let is_retried = |error: &StoreError| error.is_transient() && !self.active.is_lost();
        let retried = append.retry(backoff()).when(is_retried).notify(|error, _| {
            tracing::debug!(error = error as &dyn Error, "the journal of a run waits for the store");
        });
        match retried.await {
            Ok(true) => {
                *last += records.len() as u64;
                if let Some(event) = events.last() {
                    held.persisted_up_to(event.sequence);
                }
                Ok(())
            }
            Ok(false) => {
                held.lose();
                Err(JournalError::Superseded)
            }
            Err(_) if self.active.is_lost() => Err(JournalError::Superseded),
            Err(error) => Err(JournalError::Failed(error.into())),
        }
    }
}

/// Retries without a limit, since the lease expires if the outage of the store lasts.
fn backoff() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(1))
        .with_jitter()
        .without_max_times()
}
