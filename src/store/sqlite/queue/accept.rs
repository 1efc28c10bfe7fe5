//! Accepting runs on SQLite: their rows one after the other, in one transaction.

use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::rows::StoredTime;
use crate::store::sql::{
    Attempt, Connection, Ended, PlacedRun, Statement, ThreadState, accepted, key_claim_statement, next_turn,
    place_on_thread, run_insert_statement, stop_statement, waiting_statement,
};

/// Accepts a run.
pub(in crate::store::sqlite) async fn accept_in_txn(
    mut connection: Connection<'_>,
    row: NewQueueRow,
) -> Result<Ended<Attempt>, sqlx::Error> {
    let mut run = PlacedRun { row, interrupted: None };
    if run.row.thread().is_some() {
        let found: Option<ThreadState> = connection.fetch_optional(thread_statement(&run.row)).await?;
        run = match place_on_thread(run.row, &found.ok_or(sqlx::Error::RowNotFound)?) {
            Ok(placed) => placed,
            Err(conflict) => return Ok(Ended::RolledBack(conflict)),
        };
        if let Some(active) = run.interrupted {
            connection.execute(stop_statement(&run.row, active)).await?;
        }
    }
    if let Some(limit) = run.row.max_waiting
        && !run.row.is_leased()
    {
        let waiting: Option<(i64,)> = connection.fetch_optional(waiting_statement(&run.row, limit)).await?;
        if waiting.is_some_and(|(waiting,)| waiting >= i64::from(limit)) {
            return Ok(Ended::RolledBack(Attempt::TenantFull));
        }
    }
    if let Some(conflict) = rows_insert(&mut connection, &run.row).await? {
        return Ok(Ended::RolledBack(conflict));
    }
    Ok(accepted(&run))
}

/// Reads the state of the thread.
fn thread_statement(row: &NewQueueRow) -> Statement<'_> {
    let statement = "select
            (select run_id from run_queue
                where tenant = $1 and thread = $2 and moves_thread and not is_held) as active,
            (select session_id from threads where tenant = $1 and name = $2) as session_id,
            exists (
                select 1 from idempotency_keys where tenant = $1 and key = $3 and expires_at > $4) as is_key_taken";
    let key = row.idempotency.as_ref();
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(row.thread())
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| StoredTime(key.claimed_at)))
}

/// Inserts the rows; returns the conflict, if there is one.
async fn rows_insert(connection: &mut Connection<'_>, row: &NewQueueRow) -> Result<Option<Attempt>, sqlx::Error> {
    if let Some(base) = row.needed_base() {
        let statement = "select 1 from sessions where tenant = $1 and session_id = $2";
        let find = Statement::new(OPERATION, statement)
            .bind(row.tenant.as_str())
            .bind(base.as_uuid());
        let found: Option<(i32,)> = connection.fetch_optional(find).await?;
        if found.is_none() {
            return Ok(Some(Attempt::MissingBase(base)));
        }
    }
    if let Some(key) = &row.idempotency {
        let claim = key_claim_statement(&row.tenant, key, row.queue.run_id);
        if connection.execute(claim).await? == 0 {
            return Ok(Some(Attempt::KeyTaken));
        }
    }
    if let Some(thread) = row.thread() {
        let statement = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
            values ($1, $2, null, 0, $3, $3)
            on conflict (tenant, name) do nothing";
        let make = Statement::new(OPERATION, statement)
            .bind(row.tenant.as_str())
            .bind(thread)
            .bind(row.queue.enqueued_at);
        connection.execute(make).await?;
    }
    let run = run_insert_statement(OPERATION, &row.tenant, &row.run);
    if connection.execute(run).await? == 0 {
        return Ok(Some(Attempt::Exists));
    }
    let mut queued = Statement::new(OPERATION, "insert into run_queue (tenant, turn, ")
        .bind(row.tenant.as_str())
        .bind(row.queue.level);
    queued.push_columns(&row.queue);
    queued.push(concat!(") values ($1, ", next_turn!("$1", "$2"), ", "));
    queued.push_values(&row.queue);
    queued.push(")");
    connection.execute(queued).await?;
    Ok(None)
}
