//! Has the server analyze tables that have grown.
//!
//! The server plans a statement by the sizes that its tables have at that moment, and uses the plan
//! until one of them is analyzed. By itself it looks for grown tables once a minute. While a table
//! is small, all of its indexes cost the same, and the server takes the newest one, even if only
//! the tenant matches. So each statement of a new store would read all rows of the tenant for up to
//! a minute, on each connection.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber as _;

use super::timeouts::in_time;

/// The tables are checked after so many batches, and each time that there were twice as many.
const FIRST_CHECK: u64 = 32;

/// Analyzes the tables, or their partitions, that are more than twice as large as when the server
/// last looked at them. Skips tables that are being analyzed already.
const ANALYZE_GROWN: &str = "do $$
    declare
        grown regclass;
    begin
        for grown in
            select t.oid from unnest(array[
                'sessions', 'history_branches', 'history_segments', 'states', 'runs', 'run_queue', 'run_journal',
                'run_events', 'run_messages', 'idempotency_keys', 'webhook_deliveries'
            ]::regclass[]) whole (oid)
            cross join lateral (select whole.oid union select relid from pg_partition_tree(whole.oid)) part
            join pg_class t on t.oid = part.oid
            where pg_relation_size(t.oid) > 2 * current_setting('block_size')::bigint * greatest(t.relpages, 1)
        loop
            execute format('analyze (skip_locked) %s', grown);
        end loop;
    end
$$";

/// Counts batches, and has grown tables analyzed.
#[derive(Debug)]
pub(super) struct Statistics {
    pool: PgPool,
    batches: AtomicU64,
    tasks: TaskTracker,
    /// Cancelled when the store closes: an analysis delays no shutdown.
    closing: CancellationToken,
}

impl Statistics {
    /// Creates a counter of batches.
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            batches: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Counts a batch. Starts an analysis if one is due.
    pub(super) fn count_batch(&self) {
        let batches = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
        if batches < FIRST_CHECK || !batches.is_power_of_two() {
            return;
        }
        let (pool, closing) = (self.pool.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            // The driver would warn that the statement is slow, as it is on large tables, and of
            // each table that it skips.
            let analyze = async { sqlx::raw_sql(ANALYZE_GROWN).execute(&pool).await };
            let analyzed = in_time(analyze.with_subscriber(Dispatch::none()));
            if let Some(Err(error)) = closing.run_until_cancelled(analyzed).await {
                tracing::warn!(error = &error as &dyn Error, "grown tables are not analyzed");
            }
        });
    }

    /// Ends the analysis.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
