//! The queue of the writer: runs to show, runs that have ended, runs with events to share, and
//! changes of tenants to publish. Adding to it never waits.
//!
//! The queue contains only the ids of runs, and the writer reads the state from memory. So an
//! outage clears the queue, and afterwards the writer sends everything again. Ended runs are no
//! longer in memory. So they stay in the queue until the server has removed them or they have
//! expired there. Changes of tenants that an outage drops leave a gap, and their readers get an
//! error.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::keys::RunKeys;
use super::messages::FeedBatch;
use crate::{LiveRun, TenantChange};
use values::ids::RunId;
use values::tenant::TenantId;

/// The most changes of tenants that wait. One more leaves a gap in place of all of them.
const MAX_FEED: usize = 10_000;

/// The name of a run.
pub(super) type RunName = (TenantId, RunId);

/// The queue of the writer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    pub(super) wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Runs whose current state must be sent.
    changed: BTreeSet<RunName>,
    /// Runs with events that the server may lack. Their logs have the events.
    unshared: BTreeSet<RunName>,
    /// Runs that have ended here but that the server may still show: when they ended, and their
    /// keys.
    ended: BTreeMap<RunName, (Instant, Arc<RunKeys>)>,
    /// The changes of tenants that no other process has, oldest first.
    feed: VecDeque<(TenantId, TenantChange)>,
    /// Whether changes before these were lost.
    has_gap: bool,
    /// Whether changes were taken, and it is not known whether they were published.
    is_feed_taken: bool,
}

/// A change of a run to send to the server.
#[derive(Debug)]
pub(super) enum Change {
    /// Show its state at the time of the write.
    Show,
    /// Remove it, since it has ended.
    Remove(Arc<RunKeys>),
}

/// The next changes and runs with events, changes first, and the changes of tenants.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) changes: Vec<(RunName, Change)>,
    pub(super) unshared: Vec<RunName>,
    pub(super) feed: FeedBatch,
}

impl Queue {
    /// Queues a run whose state must be sent.
    pub(super) fn show(&self, tenant: &TenantId, run_id: RunId) {
        self.show_all([(tenant.clone(), run_id)]);
        self.wake.notify_one();
    }

    /// Queues many runs whose state must be sent. Does not wake the writer.
    pub(super) fn show_all(&self, runs: impl IntoIterator<Item = RunName>) {
        self.state.lock().changed.extend(runs);
    }

    /// Queues a run whose events must be sent.
    pub(super) fn share(&self, run: RunName) {
        self.share_all([run]);
        self.wake.notify_one();
    }

    /// Queues many runs whose events must be sent. Does not wake the writer.
    pub(super) fn share_all(&self, runs: impl IntoIterator<Item = RunName>) {
        self.state.lock().unshared.extend(runs);
    }

    /// Queues the removal of a run.
    pub(super) fn remove(&self, tenant: &TenantId, run: &LiveRun) {
        let keys = Arc::new(RunKeys::new(tenant, &run.summary));
        let name = (tenant.clone(), run.summary.run_id);
        self.state.lock().ended.insert(name, (Instant::now(), keys));
        self.wake.notify_one();
    }

    /// Queues a change of a tenant.
    pub(super) fn publish(&self, tenant: &TenantId, change: TenantChange) {
        {
            let mut state = self.state.lock();
            if state.feed.len() == MAX_FEED {
                state.lose_feed();
            }
            state.feed.push_back((tenant.clone(), change));
        }
        self.wake.notify_one();
    }

    /// Leaves a gap in the changes of all tenants.
    pub(super) fn lose_feed(&self) {
        self.state.lock().lose_feed();
        self.wake.notify_one();
    }

    /// Lists the runs of a tenant that have ended here but that the server may still show.
    pub(super) fn ended(&self, tenant: &TenantId) -> BTreeSet<RunId> {
        let state = self.state.lock();
        let from = (tenant.clone(), RunId::from_uuid(Uuid::nil()));
        let ended = state.ended.range(from..).map(|(run, _)| run);
        let ended = ended.take_while(|(owner, _)| owner == tenant);
        ended.map(|(_, run_id)| *run_id).collect()
    }

    /// Takes the next batch; empty if there is nothing to do. Returns an ended run again each time
    /// until it is [done](Self::done). Changes of tenants that were taken before leave a gap unless
    /// they were [published](Self::feed_published): their request has failed or was cut off.
    pub(super) fn take(&self, limit: usize) -> Batch {
        let mut state = self.state.lock();
        let ended = state.ended.iter().take(limit);
        let removals = ended.map(|(run, (_, keys))| (run.clone(), Change::Remove(Arc::clone(keys))));
        let mut changes: Vec<_> = removals.collect();
        while changes.len() < limit
            && let Some(run) = state.changed.pop_first()
        {
            changes.push((run, Change::Show));
        }
        let unshared = std::iter::from_fn(|| state.unshared.pop_first());
        let unshared = unshared.take(limit).collect();
        let count = state.feed.len().min(limit);
        let feed = FeedBatch {
            changes: state.feed.drain(..count).collect(),
            has_gap: mem::take(&mut state.has_gap) || state.is_feed_taken,
        };
        state.is_feed_taken = !feed.is_empty();
        Batch {
            changes,
            unshared,
            feed,
        }
    }

    /// Records that the server has published the changes of tenants that were taken last.
    pub(super) fn feed_published(&self) {
        self.state.lock().is_feed_taken = false;
    }

    /// Records changes that the server has received.
    pub(super) fn done(&self, changes: impl IntoIterator<Item = (RunName, Change)>) {
        let mut state = self.state.lock();
        for (run, change) in changes {
            if let Change::Remove(_) = change {
                state.ended.remove(&run);
            }
        }
    }

    /// Clears the queue in an outage. Retains runs that ended less than the expiry ago, since the
    /// server may still show them.
    pub(super) fn clear(&self, expiry: Duration) {
        let mut state = self.state.lock();
        state.changed.clear();
        state.unshared.clear();
        state.lose_feed();
        state.ended.retain(|_, (at, _)| at.elapsed() < expiry);
    }
}

impl Batch {
    /// Returns whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.unshared.is_empty() && self.feed.is_empty()
    }
}

impl QueueState {
    fn lose_feed(&mut self) {
        self.feed.clear();
        self.has_gap = true;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use values::ids::UuidV7Source;

    const EXPIRY: Duration = Duration::from_secs(30);

    fn run() -> LiveRun {
        let id = RunId::generate(&UuidV7Source);
        let summary = json!({
            "run_id": id, "session_id": id, "agent": "demo", "model": "demo/scripted", "mode": "sync",
            "status": "running", "usage": {}, "step_count": 0, "metadata": {}, "created_at": "2026-01-01T00:00:00Z",
        });
        LiveRun::begun(serde_json::from_value(summary).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_leaves_the_runs_that_the_server_may_still_show() {
        let (queue, tenant) = (Queue::default(), TenantId::anonymous());
        let [live, first, second] = [run(), run(), run()];
        queue.show(&tenant, live.summary.run_id);
        queue.share((tenant.clone(), live.summary.run_id));
        let thread_removed = TenantChange::ThreadRemoved {
            thread: "t".parse().unwrap(),
        };
        queue.publish(&tenant, thread_removed.clone());
        queue.remove(&tenant, &first);
        advance(EXPIRY / 2).await;
        queue.remove(&tenant, &second);
        queue.clear(EXPIRY);
        let ids = [&first, &second].map(|run| run.summary.run_id);
        assert_eq!(queue.ended(&tenant), BTreeSet::from(ids));
        let Batch {
            changes,
            unshared,
            feed,
        } = queue.take(10);
        assert_eq!((feed.changes, feed.has_gap), (Vec::new(), true));
        let removed = changes
            .iter()
            .map(|((_, run_id), change)| (*run_id, matches!(change, Change::Remove(_))));
        assert_eq!(
            removed.collect::<BTreeSet<_>>(),
            BTreeSet::from(ids.map(|run_id| (run_id, true)))
        );
        assert!(unshared.is_empty());

        advance(EXPIRY / 2).await;
        queue.clear(EXPIRY);
        assert_eq!(queue.ended(&tenant), BTreeSet::from([ids[1]]));
        queue.publish(&tenant, thread_removed.clone());
        let Batch { changes, feed, .. } = queue.take(10);
        assert_eq!((feed.changes, feed.has_gap), (vec![(tenant, thread_removed)], true));
        queue.done(changes);
        queue.feed_published();
        assert!(queue.take(10).is_empty());
    }

    #[test]
    fn changes_that_were_taken_and_not_published_leave_a_gap() {
        let (queue, tenant) = (Queue::default(), TenantId::anonymous());
        let [first, second] = ["a", "b"].map(|name| TenantChange::ThreadRemoved {
            thread: name.parse().unwrap(),
        });
        let take = || {
            let FeedBatch { changes, has_gap } = queue.take(10).feed;
            (
                changes.into_iter().map(|(_, change)| change).collect::<Vec<_>>(),
                has_gap,
            )
        };
        queue.publish(&tenant, first.clone());
        assert_eq!(take(), (vec![first], false));
        // The writer has failed meanwhile, and then begins again. The gap is lost as well.
        assert_eq!(take(), (Vec::new(), true));
        queue.publish(&tenant, second.clone());
        assert_eq!(take(), (vec![second], true));
        queue.feed_published();
        assert_eq!(take(), (Vec::new(), false));
    }
}
