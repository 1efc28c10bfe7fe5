//! Beside the work: renews the leases of this process, and keeps what its runs have told and applied.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use crate::run::active::{ActiveRun, Tenure};
use crate::run::service::RunService;
use crate::store::{RenewedLease, Store, StoreError};

/// How often events and applied messages are kept.
const KEEPING: Duration = Duration::from_secs(1);
/// Of how many runs they are kept at the same time.
const KEPT_AT_ONCE: usize = 8;

impl RunService {
    /// Renews leases until the last run has ended. Nothing else is done in between, since a lease that is renewed late is lost.
    pub(in crate::run) async fn keep_leases(self: Arc<Self>) {
        let renewal = self.settings.queue.lease / 3;
        let mut ticks = ticks(KEEPING.min(renewal));
        let mut renewed = Instant::now();
        while self.next_tick(&mut ticks).await {
            let runs = self.active.leased();
            if !runs.is_empty() && renewed.elapsed() >= renewal {
                renewed = Instant::now();
                self.renew_leases(&runs).await;
            }
            for tenure in runs.iter().filter_map(|run| run.tenure.as_ref()) {
                if tenure.has_expired(Instant::now()) {
                    tenure.lose();
                }
            }
        }
    }

    /// Keeps what runs have told and applied, until the last run has ended.
    pub(in crate::run) async fn keep_progress(self: Arc<Self>) {
        let mut ticks = ticks(KEEPING);
        while self.next_tick(&mut ticks).await {
            let runs = stream::iter(self.active.leased());
            runs.for_each_concurrent(KEPT_AT_ONCE, |run| {
                let service = &self;
                async move { service.keep(&run).await }
            })
            .await;
        }
    }

    async fn next_tick(&self, ticks: &mut Interval) -> bool {
        tokio::select! {
            () = self.ended.cancelled() => false,
            _ = ticks.tick() => true,
        }
    }

    /// Renews the leases of runs at work, and does what their callers want. A run whose lease is lost, or may be, is let go.
    pub(in crate::run) async fn renew_leases(&self, runs: &[Arc<ActiveRun>]) {
        self.read_lease_time().await;
        let leases: Vec<_> = runs.iter().filter_map(|run| run.lease().cloned()).collect();
        let asked = Instant::now();
        let renewing = self.ports.store.lease_renew(&leases, self.lease_terms().until);
        match timeout(self.settings.queue.lease / 3, renewing).await {
            Ok(Ok(renewed)) => {
                for run in runs {
                    let renewed = renewed.iter().find(|renewed| Some(&renewed.lease) == run.lease());
                    self.renewed(run, renewed, asked + self.settings.queue.lease).await;
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "leases can't be renewed");
            }
            Err(_) => tracing::warn!("leases are not renewed in time"),
        }
    }

    /// Keeps what a run has told and applied since the last time. What can't be kept now is kept later, at the latest with its end.
    pub(in crate::run) async fn keep(&self, run: &ActiveRun) {
        if let Err(error) = self.try_keep(run).await {
            tracing::debug!(run_id = %run.run_id, error = &error as &dyn std::error::Error, "events of a run are kept later");
        }
    }

    async fn try_keep(&self, run: &ActiveRun) -> Result<(), StoreError> {
        if let Some(tenure) = &run.tenure {
            keep_events(&*self.ports.store, tenure).await?;
            self.keep_applied(run).await;
        }
        Ok(())
    }

    /// Notes which messages a run has applied. What can't be noted now is noted later, at the latest with its end.
    async fn keep_applied(&self, run: &ActiveRun) {
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

    async fn renewed(&self, run: &ActiveRun, renewed: Option<&RenewedLease>, expires: Instant) {
        let Some(tenure) = &run.tenure else { return };
        let Some(renewed) = renewed else {
            // A run that ends has no lease either.
            if !tenure.is_ending() {
                tracing::warn!(run_id = %run.run_id, "another worker has taken a run over");
                tenure.lose();
            }
            return;
        };
        tenure.renewed(expires);
        if let Some(control) = renewed.control {
            run.control(control);
        }
        if renewed.has_messages
            && let Err(error) = self.fetch_messages(run).await
        {
            tracing::debug!(run_id = %run.run_id, error = &error as &dyn std::error::Error, "messages to a run come later");
        }
    }
}

/// Keeps the events that the store has not yet.
pub(super) async fn keep_events(store: &dyn Store, tenure: &Tenure) -> Result<(), StoreError> {
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
