//! Transactions that remove sessions and what they leave, beside commits.
//!
//! Whoever makes something depend on a session shares its row until the end of the transaction. A removal locks the rows of what it chooses,
//! passes over those that are shared, and then chooses again, with a snapshot from after the locks: what has come to be needed meanwhile
//! stays. Who comes later waits for the removal of that session, and finds it gone.
//!
//! Whoever writes a state that may be there already holds the state's lock before it looks; a removal of states passes over those whose
//! lock is held.

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
