//! Transactions on PostgreSQL that remove sessions and their remains, concurrently with commits.
//!
//! A transaction that adds a reference to a session locks its row in share mode until it ends. A
//! removal locks the rows that it selects, and skips shared ones. Then it selects again with a new
//! snapshot, so that sessions that are needed now stay. A later transaction waits for the removal,
//! and does not find the session.
//!
//! A commit with a state that is stored already locks the state's row. A removal of states locks
//! the rows that it checks, and skips rows that a commit has locked. A later commit waits for the
//! removal, and stores the state again if it was removed.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Transaction};

use super::timeouts::in_time;
use crate::sql::{Connection, EngineRow, RemovalAct, Tally, record};

/// Waits for the turn of a removal. On all replicas together, one removal runs at a time. Each
/// locks many rows in the order of its plan, so two at a time could deadlock.
const TURN: &str = "select 1 from removal_turn for update";

/// Makes the planner use indexes, since each condition finds few rows. Without statistics it would
/// join whole tables while other removals wait. Bitmap scans are off because they read the entries
/// of all deleted rows, and never mark them as dead.
const PREPARE: &str = "select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_bitmapscan', 'off', true)";

/// Waits for its turn and then runs the statements. The timeout applies to each of these two steps.
pub(super) async fn remove(
    pool: PgPool,
    queries: Vec<Query<'static, Postgres, PgArguments>>,
    act: Option<RemovalAct>,
) -> Result<Vec<Tally>, sqlx::Error> {
    let transaction = in_time(begin(&pool)).await?;
    in_time(run(transaction, queries, act)).await
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
    act: Option<RemovalAct>,
) -> Result<Vec<Tally>, sqlx::Error> {
    if let Some(removal) = &act {
        record(&mut Connection::Postgres(&mut transaction), &removal.act).await?;
    }
    let mut tallies = Vec::with_capacity(queries.len());
    for query in queries {
        let rows = query.fetch_all(&mut *transaction).await?;
        let rows: Vec<_> = rows.into_iter().map(EngineRow::Postgres).collect();
        tallies.push(Tally::of(&rows)?);
    }
    if act.is_none_or(|act| act.is_done(&tallies)) {
        transaction.commit().await?;
    } else {
        transaction.rollback().await?;
    }
    Ok(tallies)
}

async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(PREPARE).execute(&mut *connection).await?;
    sqlx::query(TURN).fetch_one(connection).await?;
    Ok(())
}
