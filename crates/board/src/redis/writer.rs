//! The only task that writes to the server: shows this process's runs, refreshes them, shares their
//! events, publishes changes of tenants, and detects the end of an outage.
//!
//! A run never waits for the writer. An update puts the run's name into the queue (`queue.rs`). The
//! writer later reads the current state from memory. So an outage only queues names, and the writer
//! always sends the current state. Only the start of a run is written at once, so that other
//! processes know the run as soon as its caller does.

use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, Value, from_redis_value};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::events::{self, Append};
use super::keys::RunKeys;
use super::link::Link;
use super::link_error::LinkError;
use super::messages::Origin;
use super::queue::{Batch, Change, Queue, RunName};
use super::stored;
use crate::LiveRun;
use crate::local::LocalBoard;
use values::ids::RunId;
use values::tenant::TenantId;

/// The most changes of one request.
const MAX_BATCH: usize = 64;
/// A request of this many bytes takes no further change.
const BATCH_BYTES: usize = 2 << 20;
/// The first and the longest pause between two attempts to end an outage.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Writes to the server.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) local: Arc<LocalBoard>,
    pub(super) queue: Arc<Queue>,
    pub(super) link: Arc<Link>,
    pub(super) origin: Origin,
    /// How long the server shows a run after the last refresh.
    pub(super) expiry: Duration,
    /// How long the server retains the events of a run after the last refresh.
    pub(super) event_retention: Duration,
    pub(super) end: CancellationToken,
}

/// The contents of one request.
#[derive(Default)]
struct Round {
    request: Pipeline,
    /// The number of changes in it.
    changes: usize,
    /// The number of runs with events in it.
    unshared: usize,
    /// The appends, with their positions in the request.
    appends: Vec<(usize, Append)>,
    /// The runs that it changes.
    changed: Vec<RunId>,
    bytes: usize,
}

impl Writer {
    /// Writes changes until the end, and then the pending ones.
    pub(super) async fn run(self: Arc<Self>) {
        // After a restart of this loop, changes in flight are lost. For those of tenants, the queue
        // leaves a gap.
        self.show_everything();
        let mut refresh = interval((self.expiry / 3).max(Duration::from_millis(1)));
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = PAUSES.0;
        while !self.end.is_cancelled() {
            if self.link.is_lost() {
                let recovered = self.end.run_until_cancelled(self.recover()).await;
                if let Some(Ok(())) = recovered {
                    pause = PAUSES.0;
                } else {
                    self.queue.clear(self.expiry);
                    self.end.run_until_cancelled(sleep(pause)).await;
                    pause = PAUSES.1.min(pause * 2);
                }
                continue;
            }
            // A failure here begins an outage, which this loop ends later.
            let _ = tokio::select! {
                () = self.end.cancelled() => break,
                () = self.queue.wake.notified() => self.flush().await,
                _ = refresh.tick() => self.refresh().await,
            };
        }
        if !self.link.is_lost() {
            let _ = self.flush().await;
        }
    }

    /// Shows a run that begins, at once. If it is exclusive and other runs have the same base,
    /// returns their ids instead.
    pub(super) async fn show(
        &self,
        tenant: &TenantId,
        run: &LiveRun,
        exclusive: bool,
    ) -> Result<Vec<RunId>, LinkError> {
        let mut request = Pipeline::new();
        if let Some(stored) = stored::encode(run) {
            let keys = RunKeys::new(tenant, &run.summary);
            request.add_command(keys.show(&stored, self.expiry, exclusive));
        }
        request.add_command(self.origin.publish_changes(&[run.summary.run_id]));
        let answers: Vec<Value> = self.link.send(&request).await?;
        let rivals = answers.into_iter().next().map(from_redis_value::<Vec<String>>);
        let rivals = rivals.and_then(Result::ok).unwrap_or_default();
        Ok(rivals.iter().filter_map(|rival| rival.parse().ok()).collect())
    }

    /// Ends an outage if the server accepts all missed changes. Shows every run again, since the
    /// server may have lost everything.
    async fn recover(&self) -> Result<(), LinkError> {
        self.link.reconnect().await?;
        // Changes of tenants that the server accepted before may not have reached its subscribers.
        self.queue.lose_feed();
        self.show_everything();
        self.write_all().await?;
        self.link.restore();
        Ok(())
    }

    /// Queues the state of all runs, and a comparison of all logs with the server.
    fn show_everything(&self) {
        let live = self.local.all();
        self.queue
            .show_all(live.into_iter().map(|(tenant, run)| (tenant, run.summary.run_id)));
        self.queue.share_all(self.local.events.all());
    }

    /// Renews the expiry of each run and of its events. Also detects a dead idle connection in
    /// time.
    async fn refresh(&self) -> Result<(), LinkError> {
        self.link.pulse().await?;
        for runs in self.local.all().chunks(MAX_BATCH) {
            let mut request = Pipeline::new();
            for (tenant, run) in runs {
                request.add_command(RunKeys::new(tenant, &run.summary).refresh(self.expiry));
            }
            let found: Vec<bool> = self.link.send(&request).await?;
            let names = runs.iter().map(|(tenant, run)| (tenant.clone(), run.summary.run_id));
            let gone = names.clone().zip(found).filter(|(_, found)| !found);
            self.queue.show_all(gone.map(|(run, _)| run));
            // An append without events renews the stream, and compares it with the log.
            self.queue.share_all(names);
        }
        self.flush().await
    }

    async fn flush(&self) -> Result<(), LinkError> {
        let epoch = self.link.epoch();
        let written = self.write_all().await;
        if let Err(error) = &written {
            self.link.lose(epoch, error);
        }
        written
    }

    async fn write_all(&self) -> Result<(), LinkError> {
        loop {
            let batch = self.queue.take(MAX_BATCH);
            if batch.is_empty() {
                return Ok(());
            }
            self.write(batch).await?;
        }
    }

    /// Writes a batch in one request, or in several if it is large. A failure drops the rest of the
    /// batch. It begins an outage, after which everything is sent again.
    async fn write(&self, batch: Batch) -> Result<(), LinkError> {
        let Batch {
            mut changes,
            mut unshared,
            feed,
        } = batch;
        let mut feed = self.origin.publish_feed(&feed);
        while !changes.is_empty() || !unshared.is_empty() || feed.is_some() {
            let mut round = self.round(&changes, &unshared);
            let has_feed = feed.is_some();
            if let Some(feed) = feed.take() {
                round.request.add_command(feed);
            }
            let answers = self.send(&round).await?;
            if has_feed {
                self.queue.feed_published();
            }
            self.queue.done(changes.drain(..round.changes));
            unshared.drain(..round.unshared);
            let mut has_lost = false;
            for (position, append) in &round.appends {
                let Some(answer) = answers.get(*position) else { continue };
                let appended = events::note(&self.local, append, *answer);
                has_lost |= appended.has_lost;
                if appended.is_behind {
                    unshared.push(append.run.clone());
                }
            }
            if has_lost {
                self.show_everything();
            }
        }
        Ok(())
    }

    /// Sends a round, and returns the replies as numbers. A reply that is no number counts as 0.
    async fn send(&self, round: &Round) -> Result<Vec<i64>, LinkError> {
        if round.request.is_empty() {
            return Ok(Vec::new());
        }
        let answers: Vec<Value> = self.link.attempt(&round.request).await?;
        let numbers = answers
            .into_iter()
            .map(|answer| from_redis_value(answer).unwrap_or_default());
        Ok(numbers.collect())
    }

    /// Builds a request from the first changes and events.
    fn round(&self, changes: &[(RunName, Change)], unshared: &[RunName]) -> Round {
        let mut round = Round::default();
        for (run, change) in changes {
            round.add_change(self, run, change);
            if round.bytes >= BATCH_BYTES {
                break;
            }
        }
        for run in unshared {
            if round.bytes >= BATCH_BYTES {
                break;
            }
            round.add_events(self, run);
        }
        if !round.changed.is_empty() {
            let changes = self.origin.publish_changes(&round.changed);
            round.request.add_command(changes);
        }
        round
    }
}

impl Round {
    fn add_change(&mut self, writer: &Writer, run: &RunName, change: &Change) {
        let (tenant, run_id) = run;
        self.changes += 1;
        match change {
            Change::Remove(keys) => keys.remove(&mut self.request),
            // A run that has ended since then has its own change.
            Change::Show => {
                if let Some(run) = writer.local.lookup(tenant, *run_id)
                    && let Some(stored) = stored::encode(&run)
                {
                    self.bytes += stored.summary.len() + stored.work.len();
                    let keys = RunKeys::new(tenant, &run.summary);
                    self.request.add_command(keys.show(&stored, writer.expiry, false));
                }
            }
        }
        self.changed.push(*run_id);
    }

    fn add_events(&mut self, writer: &Writer, run: &RunName) {
        self.unshared += 1;
        if let Some((append, command, bytes)) = events::next_append(&writer.local.events, run, writer.event_retention) {
            self.bytes += bytes;
            self.appends.push((self.request.len(), append));
            self.request.add_command(command);
            self.changed.push(run.1);
        }
    }
}
