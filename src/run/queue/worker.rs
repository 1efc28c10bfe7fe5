//! The worker: leases runs from the queue while it has free slots.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use crate::run::service::RunService;
use crate::store::{LeaseLimits, LeasedRun, Outage, SUSPECT_ATTEMPTS, StoreError};

/// The most runs that are leased at once.
const BATCH: usize = 16;

impl RunService {
    /// Takes runs until the service closes.
    pub(in crate::run) async fn take_runs(self: Arc<Self>) {
        let mut wake_ups = self.ports.store.queue_wake_ups();
        let taking = async {
            let mut outage = Outage::default();
            self.read_lease_time().await;
            while let Ok(place) = Arc::clone(&self.places).acquire_owned().await {
                let taken = self.take_some(place).await;
                outage.note("no runs are taken from the queue", &taken);
                if !taken.unwrap_or_default() {
                    self.wait_for_work(&mut wake_ups).await;
                    self.read_lease_time_again().await;
                }
            }
        };
        tokio::select! {
            () = self.closing.cancelled() => (),
            () = taking => (),
        }
    }

    /// Takes as many runs as there are places, and tells whether there may be more.
    async fn take_some(self: &Arc<Self>, first: OwnedSemaphorePermit) -> Result<bool, StoreError> {
        let more = std::iter::repeat_with(|| Arc::clone(&self.places).try_acquire_owned().ok());
        let more = more.take(BATCH - 1).map_while(|place| place);
        let places: Vec<_> = std::iter::once(first).chain(more).collect();
        self.lease_runs(places).await
    }

    /// A task of its own, since runs that are leased and not begun would lie idle until their leases expire.
    async fn lease_runs(self: &Arc<Self>, places: Vec<OwnedSemaphorePermit>) -> Result<bool, StoreError> {
        let service = Arc::clone(self);
        let leasing = self.tasks.spawn(async move {
            let terms = service.lease_terms();
            let limits = LeaseLimits {
                runs: u32::try_from(places.len()).unwrap_or(u32::MAX),
                suspects: u32::from(service.quarantine.is_free()),
            };
            let leasing = service.ports.store.run_lease(&terms, limits);
            // Where it is not answered in time, runs may have been leased all the same. Nobody works on them, so they are taken up again when
            // their leases expire.
            let leased = service.in_lease_time("lease runs", leasing).await?;
            let is_full = leased.len() == places.len();
            for (leased, place) in leased.into_iter().zip(places) {
                let isolated = is_suspect(&leased).then(|| service.quarantine.enter());
                let attempt = Box::pin(Arc::clone(&service).attempt(leased, terms.until, None, Some(place)));
                service.tasks.spawn(async move {
                    attempt.await;
                    drop(isolated);
                });
            }
            Ok(is_full)
        });
        // Only a fault of ours ends the task otherwise.
        leasing.await.unwrap_or(Ok(false))
    }

    async fn wait_for_work(&self, wake_ups: &mut BoxStream<'static, ()>) {
        tokio::select! {
            Some(()) = wake_ups.next() => (),
            () = sleep(self.settings.queue.poll_interval) => (),
        }
    }

    /// Looks at the database's clock unless it did so a moment ago.
    async fn read_lease_time_again(&self) {
        if self.lease_clock.is_older_than(self.lease_patience()) {
            self.read_lease_time().await;
        }
    }

    /// Looks at the database's clock; where that is impossible, the next renewal of leases does it.
    pub(in crate::run) async fn read_lease_time(&self) {
        let looking = self.lease_clock.adjust(&*self.ports.store);
        // What comes after it has its own chance, on another connection.
        match timeout(self.lease_patience() / 2, looking).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the time of the store is not known"
                );
            }
            Err(_) => tracing::debug!("the time of the store is not told in time"),
        }
    }
}

fn is_suspect(leased: &LeasedRun) -> bool {
    leased.summary.attempts > SUSPECT_ATTEMPTS
}
