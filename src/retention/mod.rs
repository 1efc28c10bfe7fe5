//! Retention: sweeps expired data, in the background or once, in small steps with pauses.
//!
//! The store alone decides which data has expired, by database time. So several processes may sweep
//! at the same time. Contains no HTTP.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use store::retention::{RemovalFigures, RetentionRules, SweepCursor};
use store::{Store, StoreError};
use values::settings::{duration, integer};

/// The pause after a step that removed or may have changed something. It leaves most of the time to
/// other removals and, on SQLite, to commits.
const REST: Duration = Duration::from_millis(50);

/// The longest pause between two sweeps: a hundred years.
const MAX_INTERVAL_MS: u64 = 3_155_760_000_000;

/// The settings of sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SweepSettings {
    /// The pause between two sweeps; with zero, no sweeps run in the background.
    #[serde(deserialize_with = "duration::<0, MAX_INTERVAL_MS, _>")]
    pub interval: Duration,
    /// How many rows one step checks.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub batch: u32,
}

/// Sweeps a store.
#[derive(Debug, Clone)]
pub struct Sweeper {
    store: Arc<dyn Store>,
    rules: RetentionRules,
    settings: SweepSettings,
}

impl Sweeper {
    /// Creates a sweeper.
    pub fn new(store: Arc<dyn Store>, rules: RetentionRules, settings: SweepSettings) -> Self {
        Self { store, rules, settings }
    }

    /// Sweeps at intervals until it is stopped. The first sweep comes after the first interval,
    /// since many processes may start at the same time.
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
                    contents = removed.contents,
                    bytes = removed.bytes,
                    "swept"
                ),
                // Other removals took too long, or there is an outage. The next sweep continues.
                Some(Err(error)) if error.is_transient() => {
                    tracing::info!(error = &error as &dyn Error, "a sweep was cut short");
                }
                Some(Err(error)) => tracing::error!(error = &error as &dyn Error, "the sweep failed"),
            }
        }
    }

    /// Runs one whole sweep. Returns how much it removed.
    pub async fn sweep(&self) -> Result<RemovalFigures, StoreError> {
        self.sweep_with(|_| ()).await
    }

    /// Runs one whole sweep, and reports after each step how much it has removed so far.
    pub async fn sweep_with(&self, mut report: impl FnMut(&RemovalFigures)) -> Result<RemovalFigures, StoreError> {
        // All steps use the same time, so that a sweep has an end.
        let now = self.store.lease_time().await?;
        let mut removed = RemovalFigures::default();
        let mut cursor = SweepCursor::Start;
        loop {
            let batch = self.settings.batch;
            let (figures, next) = self.store.retention_step(self.rules, now, &cursor, batch).await?;
            removed += figures;
            report(&removed);
            let Some(next) = next else { return Ok(removed) };
            cursor = next;
            if figures != RemovalFigures::default() || matches!(cursor, SweepCursor::OpenCalls) {
                tokio::time::sleep(REST).await;
            }
        }
    }

    /// Counts the data that a sweep would remove.
    pub async fn plan(&self) -> Result<RemovalFigures, StoreError> {
        let now = self.store.lease_time().await?;
        self.store.retention_plan(self.rules, now).await
    }
}
