//! Inserts the progress of runs on SQLite.

use crate::new_progress::{NewProgress, OPERATION};
use crate::rows::values;
use crate::sql::{Connection, Ended, Statement, events_statement, is_leased_on_conn};

/// Inserts the progress of a run. Returns whether the lease is in force.
pub(super) async fn progress_in_txn(
    mut connection: Connection<'_>,
    progress: NewProgress,
) -> Result<Ended<bool>, sqlx::Error> {
    let NewProgress {
        tenant,
        lease,
        entries,
        events,
    } = &progress;
    if !is_leased_on_conn(&mut connection, OPERATION, lease, "").await? {
        return Ok(Ended::RolledBack(false));
    }
    for entry in entries {
        let begin = "insert into run_journal (tenant, run_id, ";
        let mut insert = Statement::with(OPERATION, begin, values![tenant, lease.run_id]);
        insert.push_columns(entry);
        insert.push(") values ($1, $2, ");
        insert.push_values(entry);
        insert.push(") on conflict (tenant, run_id, sequence) do nothing");
        connection.execute(insert).await?;
    }
    if let Some(events) = events {
        connection
            .execute(events_statement(tenant, lease.run_id, events))
            .await?;
    }
    Ok(Ended::Committed(true))
}
