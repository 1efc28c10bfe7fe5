//! Transactions that remove sessions and what they leave.
//!
//! Whoever makes something depend on a session names the empty table `session_removal` in its statement. The lock on it comes before
//! the statement's snapshot, so a transaction that has the table to itself sees all that was committed, and whoever comes after it sees what
//! it has left. The table is never written, so no vacuum stands in the way, as it would on `sessions`.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool};

use crate::store::sql::{EngineRow, Shutout, Tally};

/// Names the lock of those who remove.
const REMOVALS: i64 = 0x6167_656e_7472_6d76;

/// New commits wait as long as this does for those under way, so it gives up early. The conditions find few rows each, by their
/// indexes; where statistics are missing, the planner would read whole tables while commits wait.
const PREPARE: &str = "select set_config('lock_timeout', '250ms', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)";

/// Runs the statements; an error drops the transaction, which rolls it back.
pub(super) async fn remove(
    pool: PgPool,
    shutout: Shutout,
    queries: Vec<Query<'static, Postgres, PgArguments>>,
) -> Result<Vec<Tally>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    prepare(&mut transaction, shutout).await?;
    let mut tallies = Vec::with_capacity(queries.len());
    for query in queries {
        let rows = query.fetch_all(&mut *transaction).await?;
        let rows: Vec<_> = rows.into_iter().map(EngineRow::Postgres).collect();
        tallies.push(Tally::of(&rows)?);
    }
    transaction.commit().await?;
    Ok(tallies)
}

async fn prepare(connection: &mut PgConnection, shutout: Shutout) -> Result<(), sqlx::Error> {
    sqlx::query(PREPARE).execute(&mut *connection).await?;
    if shutout == Shutout::None {
        return Ok(());
    }
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(REMOVALS)
        .execute(&mut *connection)
        .await?;
    if shutout == Shutout::Commits {
        sqlx::query("lock table session_removal in share row exclusive mode")
            .execute(connection)
            .await?;
    }
    Ok(())
}
