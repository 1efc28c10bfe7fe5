//! Renews the leases of this process, and persists what its runs have emitted, used and applied.
//!
//! *Leases* are renewed together when a third of their time has passed. A run is left shortly
//! before its lease expires. So a worker that can't renew has stopped before another one takes the
//! run over.
//!
//! *Progress* is persisted every second, for each tenant separately. These writes take at most half
//! of the connections, after their events are encoded. Renewals use other connections.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use crate::run::active::{ActiveRun, Tenure};
use crate::run::service::RunService;
use crate::store::{Outage, RenewedLease, Store, StoreError};
use crate::tenant::TenantId;

/// How often events, usage and applied messages are persisted.
const PERIOD: Duration = Duration::from_secs(1);
/// Of how many runs of a tenant they are persisted at the same time.
const AT_ONCE: usize = 8;

impl RunService {
    /// Renews each lease when a third of it has passed, and again soon where that failed, until the last run has ended. Nothing else is waited
    /// for in between, since a lease that is renewed late is lost.
    pub(in crate::run) async fn keep_leases(self: Arc<Self>) {
        let renewal = self.settings.queue.lease / 3;
        let mut ticks = ticks(PERIOD.min(renewal / 4));
        let mut outage = Outage::default();
        while self.next_tick(&mut ticks).await {
            let due = Instant::now() + 2 * renewal;
            let mut runs = self.active.leased();
            // What was let go of is for others to take over.
            runs.retain(|run| !run.is_lost() && run.tenure.as_ref().is_some_and(|tenure| tenure.has_expired(due)));
            if !runs.is_empty() {
                let told = self.renew_leases(&runs).await;
                outage.note("leases are not renewed", &told);
                let told = told.unwrap_or_default();
                if !told.is_empty() {
                    let service = Arc::clone(&self);
                    self.background.spawn(async move { service.hand_messages(&told).await });
                }
            }
        }
    }

    /// Lets go of runs whose leases are about to expire, until the last run has ended. It waits for nothing but time, so that whoever can't
    /// renew a lease has left the run before another worker takes it over.
    pub(in crate::run) async fn watch_leases(self: Arc<Self>) {
        let period = PERIOD.min(self.settings.queue.lease / 10);
        let mut ticks = ticks(period);
        while self.next_tick(&mut ticks).await {
            let next = Instant::now() + period;
            for run in self.active.leased().iter().filter(|run| !run.is_lost()) {
                if let Some(tenure) = &run.tenure
                    && tenure.has_expired(next)
                {
                    tracing::warn!(run_id = %run.run_id, "a run is left: its lease could not be renewed");
                    tenure.lose();
                }
            }
        }
    }

    /// Persists what runs have emitted, used and applied, until the last run has ended. It then drops what is in flight: the end of a run
    /// persists the rest. Each tenant is waited for by itself: large events wait for the processors of their tenant.
    pub(in crate::run) async fn persist_progress(self: Arc<Self>) {
        let mut ticks = ticks(PERIOD);
        let mut persisting = FuturesUnordered::new();
        let mut tenants = HashSet::new();
        loop {
            tokio::select! {
                () = self.ended.cancelled() => return,
                Some(tenant) = persisting.next() => {
                    tenants.remove(&tenant);
                }
                _ = ticks.tick() => {
                    let mut runs: HashMap<_, Vec<_>> = HashMap::new();
                    for run in self.active.leased() {
                        runs.entry(run.tenant.clone()).or_default().push(run);
                    }
                    for (tenant, runs) in runs {
                        if tenants.insert(tenant.clone()) {
                            persisting.push(self.persist_all(tenant, runs));
                        }
                    }
                }
            }
        }
    }

    /// Persists what the runs of a tenant have emitted, used and applied.
    async fn persist_all(&self, tenant: TenantId, runs: Vec<Arc<ActiveRun>>) -> TenantId {
        let persisting = stream::iter(&runs).for_each_concurrent(AT_ONCE, |run| self.persist(run));
        persisting.await;
        tenant
    }

    async fn next_tick(&self, ticks: &mut Interval) -> bool {
        tokio::select! {
            () = self.ended.cancelled() => false,
            _ = ticks.tick() => true,
        }
    }

    /// Renews the leases of runs at work, and does how their callers want them to end. A run whose lease is lost is let go. Returns those that
    /// messages wait for.
    pub(in crate::run) async fn renew_leases(
        &self,
        runs: &[Arc<ActiveRun>],
    ) -> Result<Vec<Arc<ActiveRun>>, StoreError> {
        let leases: Vec<_> = runs.iter().filter_map(|run| run.lease().cloned()).collect();
        let renewing = async {
            self.read_lease_time().await;
            let until = self.lease_terms().until;
            let renewed = self.ports.store.lease_renew(&leases, until).await?;
            Ok::<_, StoreError>((renewed, self.lease_clock.instant_of(until)))
        };
        let (renewed, expires) = self.in_lease_time("renew leases", renewing).await?;
        let renewed: HashMap<_, _> = renewed.iter().map(|renewed| (renewed.lease.run_id, renewed)).collect();
        let mut told = Vec::new();
        for run in runs {
            let renewed = renewed.get(&run.run_id).copied();
            let renewed = renewed.filter(|renewed| Some(&renewed.lease) == run.lease());
            note_renewal(run, renewed, expires);
            told.extend(renewed.filter(|renewed| renewed.has_messages).map(|_| Arc::clone(run)));
        }
        Ok(told)
    }

    /// Returns how long what concerns leases may take before it is tried anew: a connection may have gone silent that nobody has closed.
    pub(in crate::run) fn lease_patience(&self) -> Duration {
        self.settings.queue.lease / 3
    }

    /// Waits as long for an operation of the store. One that is given up may have taken effect.
    pub(in crate::run) async fn in_lease_time<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let done = timeout(self.lease_patience(), work).await;
        done.unwrap_or_else(|elapsed| Err(StoreError::late(operation, elapsed)))
    }

    /// Hands messages of the store to runs. What can't be read now comes with the next renewal of their leases.
    pub(in crate::run) async fn hand_messages(&self, runs: &[Arc<ActiveRun>]) {
        let handing = stream::iter(runs).for_each_concurrent(AT_ONCE, async |run| {
            if let Err(error) = self.fetch_messages(run).await {
                tracing::debug!(run_id = %run.run_id, error = &error as &dyn std::error::Error, "messages to a run come later");
            }
        });
        if timeout(self.lease_patience(), handing).await.is_err() {
            tracing::debug!("messages to runs are not read in time");
        }
    }

    /// Persists what a run has emitted, used and applied since the last time. What fails now is persisted later, at the latest with its end.
    pub(in crate::run) async fn persist(&self, run: &ActiveRun) {
        if let Err(error) = self.in_lease_time("persist progress", self.try_persist(run)).await {
            tracing::debug!(run_id = %run.run_id, error = &error as &dyn std::error::Error, "the progress of a run is persisted later");
        }
    }

    async fn try_persist(&self, run: &ActiveRun) -> Result<(), StoreError> {
        if let Some(tenure) = &run.tenure {
            // Before the events, so that no step is emitted whose cost a later attempt does not know.
            self.persist_usage(run, tenure).await?;
            persist_events(&*self.ports.store, tenure).await?;
            self.persist_applied(run).await;
        }
        Ok(())
    }

    /// Persists what a run has used since the last time: a later attempt at it counts that.
    async fn persist_usage(&self, run: &ActiveRun, tenure: &Tenure) -> Result<(), StoreError> {
        let Some(spent) = run.spending.get().map(|control| control.spent()) else {
            return Ok(());
        };
        if spent != tenure.kept_usage() && self.ports.store.usage_update(&tenure.lease, &spent).await? {
            tenure.usage_kept(spent);
        }
        Ok(())
    }

    /// Notes which messages a run has applied. What can't be noted now is noted later, at the latest with its end.
    async fn persist_applied(&self, run: &ActiveRun) {
        let Some(lease) = run.lease() else { return };
        let applied = run.inbox.untold();
        if applied.is_empty() {
            return;
        }
        match self.ports.store.message_apply(lease, &applied).await {
            Ok(_) => run.inbox.told(&applied),
            Err(error) => {
                tracing::debug!(run_id = %run.run_id, error = &error as &dyn std::error::Error, "applied messages are noted later");
            }
        }
    }
}

/// Does what was heard of a run with the renewal of its lease.
fn note_renewal(run: &ActiveRun, renewed: Option<&RenewedLease>, expires: Instant) {
    let Some(tenure) = &run.tenure else { return };
    let Some(renewed) = renewed else {
        // A run that ends has no lease either.
        if !tenure.is_ending() {
            tracing::warn!(run_id = %run.run_id, "another worker has taken a run over");
            tenure.lose();
        }
        return;
    };
    if renewed.is_prolonged {
        tenure.renewed(expires);
    } else {
        tracing::debug!(run_id = %run.run_id, "a lease is renewed later: its run is being changed");
    }
    if let Some(control) = renewed.control {
        run.control(control);
    }
}

/// Persists the events that the store does not have yet.
pub(super) async fn persist_events(store: &dyn Store, tenure: &Tenure) -> Result<(), StoreError> {
    let told = tenure.unkept();
    if let Some(last) = told.last().map(|event| event.sequence)
        && store.event_append(&tenure.lease, &told).await?
    {
        tenure.kept(last);
    }
    Ok(())
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
