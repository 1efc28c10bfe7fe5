//! The only task that writes to the server: shows this process's runs, refreshes them, and detects
//! the end of an outage.
//!
//! A run never waits for the writer. An update puts the run's name into the queue (`queue.rs`), and
//! the writer reads the current state from memory when it gets there. So an outage only queues
//! names, and what is written after it is current.

use std::sync::Arc;
use std::time::Duration;

use redis::{Value, from_redis_value};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::keys::{self, RunKeys};
use super::link::{Link, LinkError};
use super::messages::Origin;
use super::queue::{Batch, Change, Opening, Queue, RunName};
use super::request::Request;
use super::stored::Encoder;
use super::streams::{Sent, Streams};
use crate::board::InProcessBoard;
use crate::ids::RunId;

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
    pub(super) streams: Arc<Streams>,
    pub(super) origin: Origin,
    /// How long a run is shown after the last sign of life.
    pub(super) expiry: Duration,
    /// How long the events of a run are kept after the last sign of life.
    pub(super) event_retention: Duration,
    pub(super) end: CancellationToken,
}

/// What of a run is kept for another while.
enum Kept {
    Run,
    Events,
}

/// What one request writes.
#[derive(Default)]
struct Round {
    request: Request,
    /// How many of the changes are in it.
    changes: usize,
    /// How many of the runs that have told events are in it.
    told: usize,
    /// The appends, with their places in the request.
    sent: Vec<(usize, Sent)>,
    /// The runs of which it has news.
    news: Vec<RunId>,
    bytes: usize,
}

impl Writer {
    /// Writes until the end, then writes what is left.
    pub(super) async fn run(self: Arc<Self>) {
        // If this is begun again, what was on its way is lost. Live runs are shown anew; those that had ended expire on the server.
        self.show_everything();
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
        self.show_everything();
        self.write_all().await?;
        self.link.restore();
        Ok(())
    }

    /// Has the server shown all that there is, and compared with it.
    fn show_everything(&self) {
        let live = self.local.all();
        self.queue
            .show_all(live.into_iter().map(|(tenant, run)| (tenant, run.summary.run_id)));
        self.queue.tell_all(self.local.events.all_held());
    }

    /// Renews the expiry of each run; also tells in time that an idle connection is dead.
    async fn keep(&self) -> Result<(), LinkError> {
        self.link.pulse().await?;
        self.encoder
            .retain(|(tenant, run_id)| self.local.lookup(tenant, *run_id).is_some());
        self.streams.sweep();
        for runs in self.local.all().chunks(MAX_BATCH) {
            let mut request = Request::default();
            let mut kept = Vec::with_capacity(2 * runs.len());
            for (tenant, run) in runs {
                let run_id = run.summary.run_id;
                let name = || (tenant.clone(), run_id);
                request.add(tenant, RunKeys::new(tenant, &run.summary).keep(self.expiry));
                kept.push((name(), Kept::Run));
                if self.local.events.held(tenant, run_id).is_some() {
                    request.add(tenant, keys::keep_events(tenant, run_id, self.event_retention));
                    kept.push((name(), Kept::Events));
                }
            }
            let found: Vec<bool> = self.link.send(&request).await?;
            for ((run, part), _) in kept.into_iter().zip(found).filter(|(_, found)| !found) {
                match part {
                    Kept::Run => self.queue.show_all([run]),
                    Kept::Events => self.queue.tell_all([run]),
                }
            }
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
        let Batch {
            mut changes,
            mut told,
            openings,
        } = batch;
        while !changes.is_empty() || !told.is_empty() {
            let round = self.round(&changes, &told);
            let answers = match self.send(&round).await {
                Ok(answers) => answers,
                Err(error) => {
                    self.queue.put_back(changes);
                    self.queue.tell_all(told);
                    return Err(error);
                }
            };
            let rest = changes.split_off(round.changes);
            self.queue.done(&changes);
            changes = rest;
            told.drain(..round.told);
            let mut has_lost = false;
            for (place, sent) in &round.sent {
                let Some(last) = answers.get(*place) else { continue };
                let answered = self.streams.answered(sent, *last);
                has_lost |= answered.has_lost;
                if answered.is_behind {
                    told.push(sent.run.clone());
                }
            }
            if has_lost {
                self.show_everything();
            }
        }
        self.ask(openings).await
    }

    /// Sends a round, and returns the answers as numbers; what is no number is 0.
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

    /// Asks for the runs that want to begin.
    async fn ask(&self, openings: Vec<Opening>) -> Result<(), LinkError> {
        let mut request = Request::default();
        let (mut asked, mut news) = (Vec::with_capacity(openings.len()), Vec::new());
        for opening in openings {
            if let Some(stored) = self.encoder.encode(&opening.tenant, &opening.run) {
                let keys = RunKeys::new(&opening.tenant, &opening.run.summary);
                request.add(&opening.tenant, keys.show(&stored, self.expiry, opening.exclusive));
                news.push(opening.run.summary.run_id);
                asked.push(opening.answer);
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        request.publish(self.origin.tell_changes(&news));
        let rivals: Vec<Value> = self.link.attempt(&request).await?;
        for (answer, rival) in asked.into_iter().zip(rivals) {
            let rival: Option<String> = from_redis_value(rival).unwrap_or_default();
            let rival = rival.and_then(|rival| rival.parse().ok());
            // Whoever stopped waiting takes the run off again.
            let _ = answer.send(rival.map_or(Ok(()), Err));
        }
        Ok(())
    }

    /// Makes a request of the first changes and of events.
    fn round(&self, changes: &[(RunName, Change)], told: &[RunName]) -> Round {
        let mut round = Round::default();
        for (run, change) in changes {
            round.add_change(self, run, change);
            if round.bytes >= BATCH_BYTES {
                break;
            }
        }
        for run in told {
            if round.bytes >= BATCH_BYTES {
                break;
            }
            round.add_events(self, run);
        }
        if !round.news.is_empty() {
            let news = self.origin.tell_changes(&round.news);
            round.request.publish(news);
        }
        round
    }
}

impl Round {
    fn add_change(&mut self, writer: &Writer, run: &RunName, change: &Change) {
        let (tenant, run_id) = run;
        self.changes += 1;
        match change {
            Change::Remove(keys) => keys.remove(tenant, &mut self.request),
            // A run that has ended since has its own change.
            Change::Show => {
                if let Some(run) = writer.local.lookup(tenant, *run_id)
                    && let Some(stored) = writer.encoder.encode(tenant, &run)
                {
                    self.bytes += stored.summary.len() + stored.work.len();
                    let keys = RunKeys::new(tenant, &run.summary);
                    self.request.add(tenant, keys.show(&stored, writer.expiry, false));
                }
            }
        }
        self.news.push(*run_id);
    }

    fn add_events(&mut self, writer: &Writer, run: &RunName) {
        self.told += 1;
        if let Some((sent, command, bytes)) = writer.streams.next(run) {
            self.bytes += bytes;
            self.sent.push((self.request.len(), sent));
            self.request.add(&run.0, command);
            self.news.push(run.1);
        }
    }
}
