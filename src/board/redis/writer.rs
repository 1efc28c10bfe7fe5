//! The one task that writes to the server: it shows this process's runs, keeps them shown, and finds out when an outage is over.

use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, pipe};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::keys::RunKeys;
use super::link::{Link, LinkError};
use super::queue::{Batch, Change, Queue, RunName};
use super::stored::Encoder;
use crate::board::InProcessBoard;

/// The most changes of one request.
const MAX_BATCH: usize = 64;
/// The most bytes after which a request takes no further change.
const BATCH_BYTES: usize = 2 << 20;
/// How long the writer waits between its tries to end an outage: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Writes to the server.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) local: Arc<InProcessBoard>,
    pub(super) queue: Arc<Queue>,
    pub(super) link: Arc<Link>,
    pub(super) encoder: Encoder,
    /// How long a run is shown after the last sign of life.
    pub(super) expiry: Duration,
    pub(super) end: CancellationToken,
}

impl Writer {
    /// Writes until the end, then writes what is left.
    pub(super) async fn run(self) {
        let mut refresh = interval((self.expiry / 3).max(Duration::from_millis(1)));
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = PAUSES.0;
        while !self.end.is_cancelled() {
            if self.link.is_lost() {
                self.queue.refuse_openings();
                let recovered = self.end.run_until_cancelled(self.recover()).await;
                if let Some(Ok(())) = recovered {
                    pause = PAUSES.0;
                } else {
                    self.end.run_until_cancelled(sleep(pause)).await;
                    pause = PAUSES.1.min(pause * 2);
                }
                continue;
            }
            // What fails here begins an outage, whose end is this loop's concern.
            let _ = tokio::select! {
                () = self.end.cancelled() => break,
                () = self.queue.wake.notified() => self.flush().await,
                _ = refresh.tick() => self.keep().await,
            };
        }
        if !self.link.is_lost() {
            let _ = self.flush().await;
        }
        self.queue.refuse_openings();
    }

    /// Ends an outage, if the server takes all that it has missed. It may have lost everything, so each run is shown again.
    async fn recover(&self) -> Result<(), LinkError> {
        self.link.reconnect().await?;
        let live = self.local.all();
        self.queue
            .show_all(live.into_iter().map(|(tenant, run)| (tenant, run.summary.run_id)));
        self.write_all().await?;
        self.link.restore();
        Ok(())
    }

    /// Renews the expiry of each run; also tells in time that an idle connection is dead.
    async fn keep(&self) -> Result<(), LinkError> {
        self.link.send::<()>(pipe().cmd("PING").ignore()).await?;
        self.encoder
            .retain(|(tenant, run_id)| self.local.lookup(tenant, *run_id).is_some());
        for runs in self.local.all().chunks(MAX_BATCH) {
            let mut request = Pipeline::with_capacity(runs.len());
            for (tenant, run) in runs {
                request.add_command(RunKeys::new(tenant, &run.summary).keep(self.expiry));
            }
            let kept: Vec<bool> = self.link.send(&request).await?;
            let lost = runs.iter().zip(kept).filter(|(_, kept)| !kept);
            self.queue
                .show_all(lost.map(|((tenant, run), _)| (tenant.clone(), run.summary.run_id)));
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

    /// Writes a batch in one request, or in several if it is large.
    async fn write(&self, batch: Batch) -> Result<(), LinkError> {
        let Batch { mut changes, openings } = batch;
        while !changes.is_empty() {
            let (request, count) = self.changes_request(&changes);
            let rest = changes.split_off(count);
            if let Err(error) = self.link.attempt::<()>(&request).await {
                self.queue.put_back(changes);
                self.queue.put_back(rest);
                return Err(error);
            }
            self.queue.done(&changes);
            changes = rest;
        }
        let mut request = Pipeline::with_capacity(openings.len());
        let mut asked = Vec::with_capacity(openings.len());
        for opening in openings {
            if let Some(stored) = self.encoder.encode(&opening.tenant, &opening.run) {
                let keys = RunKeys::new(&opening.tenant, &opening.run.summary);
                request.add_command(keys.show(&stored, self.expiry, opening.exclusive));
                asked.push(opening.answer);
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let rivals: Vec<Option<String>> = self.link.attempt(&request).await?;
        for (answer, rival) in asked.into_iter().zip(rivals) {
            let rival = rival.and_then(|rival| rival.parse().ok());
            // Whoever stopped waiting takes the run off again.
            let _ = answer.send(rival.map_or(Ok(()), Err));
        }
        Ok(())
    }

    /// Returns a request for the first changes, and how many these are.
    fn changes_request(&self, changes: &[(RunName, Change)]) -> (Pipeline, usize) {
        let mut request = Pipeline::new();
        let (mut bytes, mut count) = (0, 0);
        for ((tenant, run_id), change) in changes {
            match change {
                Change::Remove(keys) => keys.remove(&mut request),
                // A run that has ended since has its own change.
                Change::Show => {
                    if let Some(run) = self.local.lookup(tenant, *run_id)
                        && let Some(stored) = self.encoder.encode(tenant, &run)
                    {
                        bytes += stored.summary.len() + stored.work.len();
                        let keys = RunKeys::new(tenant, &run.summary);
                        request.add_command(keys.show(&stored, self.expiry, false)).ignore();
                    }
                }
            }
            count += 1;
            if bytes >= BATCH_BYTES {
                break;
            }
        }
        (request, count)
    }
}
