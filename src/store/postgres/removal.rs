//! Transactions on PostgreSQL that remove sessions and their remains, concurrently with commits.
//!
//! *Sessions.* Every statement that makes something depend on a session shares that session's row
//! until its transaction ends. A removal locks the rows that it selects, and skips shared ones
//! (`for update skip locked`). Then it selects again, with a snapshot from after the locks. So what
//! has come to be needed meanwhile stays. A later commit waits for the removal of that one session,
//! and finds it gone.
//!
//! *States* are shared by their content. A writer of a state that may already exist takes the lock
//! of its hash first. A removal of states skips those whose lock is held.
//!
//! *Removals* run one at a time on all replicas, under an advisory lock, since each locks many rows
//! in no fixed order.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Transaction};

use super::patience::in_time;
use crate::store::sql::{EngineRow, Tally};

/// Names the lock of those who remove anything. They go one by one, on all replicas: each locks many rows in whatever order a plan has, so
/// two at a time would wait for each other.
const REMOVALS: i64 = 0x6167_656e_7472_6d76;

/// The conditions find few rows each, by their indexes; where statistics are missing, the planner would join whole tables while other
/// removals wait. Scans by bitmaps read the entries of all that is gone, and never mark them as dead.
const PREPARE: &str = "select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_bitmapscan', 'off', true)";

/// The number of the lock of a tenant's state with the given hash: equal states of other tenants have locks of their own.
macro_rules! state_lock {
    ($tenant:literal, $hash:literal) => {
        concat!(
            "hashtextextended(",
            $tenant,
            ", 0) # ('x' || encode(substr(",
            $hash,
            ", 1, 8), 'hex'))::bit(64)::bigint"
        )
    };
}

pub(super) use state_lock;

/// Removes something when it is this removal's turn; the time for its statements begins then.
pub(super) async fn remove(
    pool: PgPool,
    queries: Vec<Query<'static, Postgres, PgArguments>>,
) -> Result<Vec<Tally>, sqlx::Error> {
    let transaction = in_time(begin(&pool)).await?;
    in_time(run(transaction, queries)).await
}

async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    prepare(&mut transaction).await?;
    Ok(transaction)
}

/// Runs the statements; an error drops the transaction, which rolls it back.
async fn run(
    mut transaction: Transaction<'static, Postgres>,
    queries: Vec<Query<'static, Postgres, PgArguments>>,
) -> Result<Vec<Tally>, sqlx::Error> {
    let mut tallies = Vec::with_capacity(queries.len());
    for query in queries {
        let rows = query.fetch_all(&mut *transaction).await?;
        let rows: Vec<_> = rows.into_iter().map(EngineRow::Postgres).collect();
        tallies.push(Tally::of(&rows)?);
    }
    transaction.commit().await?;
    Ok(tallies)
}

async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(PREPARE).execute(&mut *connection).await?;
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(REMOVALS)
        .execute(connection)
        .await?;
    Ok(())
}
