//! Retention: sweeps expired data, in the background or once, in small steps with pauses.
//!
//! The store alone decides what expires, by the time of its database. So any number of processes
//! may sweep at once. No HTTP, no configuration.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::store::{RemovalFigures, RetentionRules, Store, StoreError, SweepCursor};

/// The pause after a step that removed something, so that other removals, and on SQLite commits, have most of the time.
const REST: Duration = Duration::from_millis(50);

/// How what is not kept is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// What is kept.
    pub rules: RetentionRules,
    /// The pause between two sweeps; zero for none in the background.
    pub interval: Duration,
    /// How many things one step looks at.
    pub batch: u32,
}

/// Sweeps a store.
#[derive(Debug, Clone)]
pub struct Sweeper {
    store: Arc<dyn Store>,
    settings: RetentionSettings,
}

impl Sweeper {
    /// Makes a sweeper, which does nothing by itself.
    pub fn new(store: Arc<dyn Store>, settings: RetentionSettings) -> Self {
        Self { store, settings }
    }

    /// Sweeps again and again until it is told to stop; at once never, since many processes may start together.
    pub async fn run(self, stop: CancellationToken) {
        if self.settings.interval.is_zero() {
            return;
        }
        while stop
            .run_until_cancelled(tokio::time::sleep(self.settings.interval))
            .await
            .is_some()
        {
            let swept = stop.run_until_cancelled(self.sweep());
            match swept.await {
                None => return,
                Some(Ok(removed)) if removed == RemovalFigures::default() => tracing::debug!("nothing to sweep"),
                Some(Ok(removed)) => tracing::info!(
                    sessions = removed.sessions,
                    segments = removed.segments,
                    states = removed.states,
                    runs = removed.runs,
                    events = removed.events,
                    bytes = removed.bytes,
                    "swept"
                ),
                // Other removals that took long, or an outage: the next sweep goes on.
                Some(Err(error)) if error.is_transient() => {
                    tracing::info!(error = &error as &dyn Error, "the sweep was given up");
                }
                Some(Err(error)) => tracing::error!(error = &error as &dyn Error, "the sweep failed"),
            }
        }
    }

    /// Sweeps from the beginning to the end; returns what was removed.
    pub async fn sweep(&self) -> Result<RemovalFigures, StoreError> {
        // One time for all steps, so that a sweep has an end.
        let now = self.store.lease_time().await?;
        let mut removed = RemovalFigures::default();
        let mut cursor = SweepCursor::Start;
        loop {
            let (figures, next) = self.step(now, &cursor).await?;
            removed += figures;
            let Some(next) = next else { return Ok(removed) };
            cursor = next;
            if figures != RemovalFigures::default() {
                tokio::time::sleep(REST).await;
            }
        }
    }

    async fn step(
        &self,
        now: Timestamp,
        cursor: &SweepCursor,
    ) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
        let settings = &self.settings;
        self.store
            .retention_step(settings.rules, now, cursor, settings.batch)
            .await
    }

    /// Counts what a sweep would remove.
    pub async fn plan(&self) -> Result<RemovalFigures, StoreError> {
        let now = self.store.lease_time().await?;
        self.store.retention_plan(self.settings.rules, now).await
    }
}
