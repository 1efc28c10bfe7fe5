//! Counts what the database was asked, across its restarts: a crash empties its statistics, so they
//! are read all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

const PERIOD: Duration = Duration::from_millis(500);

/// A running counter; it ends with the process. What a crash hides within a period is not counted.
#[derive(Debug, Clone)]
pub(crate) struct StatementCounter {
    total: Arc<AtomicI64>,
}

impl StatementCounter {
    /// Starts to count.
    pub(crate) fn start(options: PgConnectOptions) -> Self {
        let total = Arc::<AtomicI64>::default();
        let counted = Arc::clone(&total);
        tokio::spawn(async move {
            let mut last = None;
            let mut connection = None;
            loop {
                if connection.is_none() {
                    connection = options.connect().await.ok();
                }
                let seen = match &mut connection {
                    Some(connection) => calls(connection).await.ok(),
                    None => None,
                };
                match (seen, last) {
                    (Some(seen), Some(before)) => {
                        // Fewer than before: the statistics began again.
                        let new = if seen >= before { seen - before } else { seen };
                        counted.fetch_add(new, Ordering::Relaxed);
                    }
                    (None, _) => connection = None,
                    (Some(_), None) => (),
                }
                last = seen.or(last);
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { total }
    }

    /// Returns how many statements were counted.
    pub(crate) fn total(&self) -> i64 {
        self.total.load(Ordering::Relaxed)
    }
}

async fn calls(connection: &mut PgConnection) -> sqlx::Result<i64> {
    let sum = sqlx::query_scalar(
        "select coalesce(sum(calls), 0)::bigint from pg_stat_statements where query not like '%pg_stat_statements%'",
    );
    sum.fetch_one(connection).await
}
