//! Has the server analyze tables that have grown.
//!
//! The server plans a statement by the sizes that its tables have at that moment, and uses the plan
//! until one of them is analyzed. By itself it looks for grown tables once a minute. While a table
//! is small, all of its indexes cost the same, and the server takes the newest one, even if only
//! the tenant matches. So each statement of a new store would read all rows of the tenant for up to
//! a minute, on each connection.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{AssertSqlSafe, PgPool};
use tokio_util::task::TaskTracker;

use super::timeouts::in_time;

/// The tables are checked after so many batches, and each time that there were twice as many.
const FIRST_CHECK: u64 = 32;

/// Finds the tables that are more than twice as large as when the server last looked at them.
const GROWN: &str = "select string_agg(t.oid::regclass::text, ', ') from pg_class t
    where t.oid = any (array[
            'sessions', 'history_branches', 'history_segments', 'states', 'runs', 'run_queue', 'run_journal', 'run_events',
            'run_messages', 'idempotency_keys', 'webhook_deliveries'
        ]::regclass[])
        and pg_relation_size(t.oid) > 2 * current_setting('block_size')::bigint * greatest(t.relpages, 1)";

/// Counts batches, and has grown tables analyzed.
#[derive(Debug)]
pub(super) struct Statistics {
    pool: PgPool,
    batches: AtomicU64,
    tasks: TaskTracker,
}

impl Statistics {
    /// Analyzes in tasks of the tracker.
    pub(super) fn new(pool: PgPool, tasks: TaskTracker) -> Self {
        Self {
            pool,
            batches: AtomicU64::new(0),
            tasks,
        }
    }

    /// Counts a batch. Starts an analysis if one is due.
    pub(super) fn count_batch(&self) {
        let batches = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
        if batches < FIRST_CHECK || !batches.is_power_of_two() {
            return;
        }
        let pool = self.pool.clone();
        self.tasks.spawn(async move {
            if let Err(error) = in_time(analyze_grown(&pool)).await {
                tracing::debug!(error = &error as &dyn Error, "grown tables are not analyzed");
            }
        });
    }
}

/// Skips tables that are being analyzed already.
async fn analyze_grown(pool: &PgPool) -> Result<(), sqlx::Error> {
    let (grown,): (Option<String>,) = sqlx::query_as(GROWN).fetch_one(pool).await?;
    let Some(grown) = grown else { return Ok(()) };
    let analyze = format!("analyze (skip_locked) {grown}");
    sqlx::raw_sql(AssertSqlSafe(analyze)).execute(pool).await?;
    Ok(())
}
