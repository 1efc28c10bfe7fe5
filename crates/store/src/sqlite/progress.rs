//! Inserts the progress of runs on SQLite.

use crate::new_progress::{NewProgress, OPERATION};
use crate::rows::values;
use crate::sql::{Connection, Ended, Statement, events_statement};

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
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let find = Statement::new(OPERATION, statement).bind_key(lease);
    let found: Option<(i32,)> = connection.fetch_optional(find).await?;
    if found.is_none() {
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
