//! The end of runs: the rows written with the record, and the next run of the thread.

use async_trait::async_trait;
use uuid::Uuid;

use super::fence::is_leased_on_conn;
use super::messages::apply_on_conn;
use super::progress::events_conflict;
use crate::error::StoreError;
use crate::new_end::{NewEnd, NewEvents};
use crate::rows::{LeaseKey, values};
use crate::runs::{Recorded, RunEnd, RunWriter};
use crate::sql::connection::{Connection, Ended};
use crate::sql::engine::Engine;
use crate::sql::runs::run_insert_statement;
use crate::sql::spend::settle_on_conn;
use crate::sql::statement::{Statement, insert_statement};
use agent::record::RunStatus;
use values::ids::RunId;
use values::tenant::TenantId;

const OPERATION: &str = "record run";

#[async_trait]
impl<E: Engine> RunWriter for E {
    async fn run_record(&self, tenant: &TenantId, end: &RunEnd) -> Result<Recorded, StoreError> {
        let end = NewEnd::make(tenant, end).await.map_err(StoreError::failed(OPERATION))?;
        if end.is_record_only() {
            let insert = run_insert_statement(OPERATION, tenant, &end.run);
            let inserted = insert.execute(self).await?;
            return Ok(if inserted > 0 { Recorded::Now } else { Recorded::Before });
        }
        let (owned, run_id, is_leased) = (tenant.clone(), end.run.row.run_id, end.lease.is_some());
        let recording = self.transact(OPERATION, move |connection| {
            Box::pin(record_in_txn::<E>(connection, owned, end))
        });
        if recording.await? {
            return Ok(Recorded::Now);
        }
        if is_leased && !has_ended(self, tenant, run_id).await? {
            return Ok(Recorded::LeaseLost);
        }
        Ok(Recorded::Before)
    }

    async fn run_hide(&self, tenant: &TenantId, run_id: RunId) -> Result<bool, StoreError> {
        let statement = "update runs set hidden = true where tenant = $1 and run_id = $2";
        let update = Statement::with("hide run", statement, values![tenant, run_id]);
        Ok(update.execute(self).await? > 0)
    }
}

/// Ends a run without a session. Returns whether this attempt ended it.
async fn record_in_txn<E: Engine>(
    mut connection: Connection<'_>,
    tenant: TenantId,
    end: NewEnd,
) -> Result<Ended<bool>, sqlx::Error> {
    let is_ended = if let Some(lease) = &end.lease {
        let is_leased = lease_lock::<E>(&mut connection, lease).await?;
        if is_leased {
            E::run_end_on_conn(&mut connection, &tenant, lease, &end).await?;
        }
        is_leased
    } else {
        run_insert::<E>(&mut connection, &tenant, &end).await?
    };
    if !is_ended {
        return Ok(Ended::RolledBack(false));
    }
    Ok(if end_complete::<E>(&mut connection, &tenant, &end).await? {
        Ended::CommittedForWorkers(true)
    } else {
        Ended::Committed(true)
    })
}

async fn has_ended(engine: &impl Engine, tenant: &TenantId, run_id: Uuid) -> Result<bool, StoreError> {
    let statement = "select status from runs where tenant = $1 and run_id = $2";
    let select = Statement::with(OPERATION, statement, values![tenant, run_id]);
    let row: Option<(String,)> = select.fetch_optional(engine).await?;
    let status = row.and_then(|(status,)| status.parse::<RunStatus>().ok());
    Ok(status.is_some_and(RunStatus::is_terminal))
}

/// Locks the row of a run in the queue. Returns whether the lease is in force. If so, no other
/// worker can write anything of the run, and the next statement sees all that was written before.
pub(crate) async fn lease_lock<E: Engine>(
    connection: &mut Connection<'_>,
    lease: &LeaseKey,
) -> Result<bool, sqlx::Error> {
    is_leased_on_conn(connection, OPERATION, lease, E::LOCK).await
}

/// Inserts the record and the events of a run that was never in the queue, and settles what it has
/// spent. Returns whether there was no record.
pub(crate) async fn run_insert<E: Engine>(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
) -> Result<bool, sqlx::Error> {
    let insert = run_insert_statement(OPERATION, tenant, &end.run);
    if connection.execute(insert).await? == 0 {
        return Ok(false);
    }
    events_insert(connection, tenant, end).await?;
    if let Some(settlement) = &end.settlement {
        settle_on_conn::<E>(connection, tenant, end.run.row.run_id, settlement.spent).await?;
    }
    Ok(true)
}

/// Completes the end of a run: releases the next run on its thread, marks its messages, and inserts
/// its webhooks. Returns whether a run that waited for the thread may now begin.
///
/// Releases the next run before the thread moves, since a lease also locks rows of the queue before
/// rows of threads.
pub(crate) async fn end_complete<E: Engine>(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
) -> Result<bool, sqlx::Error> {
    let mut is_next_released = false;
    if let Some(lease) = &end.lease {
        is_next_released = next_release::<E>(connection, &lease.tenant, end.thread_name()).await?;
        apply_on_conn(connection, lease, &end.applied).await?;
    }
    for delivery in &end.deliveries {
        let insert = insert_statement(OPERATION, "insert into webhook_deliveries (tenant, ", tenant, delivery);
        connection.execute(insert).await?;
    }
    Ok(is_next_released)
}

/// Releases the run that has waited longest for the thread, unless another run is active. Returns
/// whether there is one.
pub(super) async fn next_release<E: Engine>(
    connection: &mut Connection<'_>,
    tenant: &str,
    thread: Option<&str>,
) -> Result<bool, sqlx::Error> {
    let Some(thread) = thread else { return Ok(false) };
    let begin = "update run_queue set is_held = false, enqueued_at = (";
    let statement = ")
        where tenant = $1 and run_id = (
            select run_id from run_queue
            where tenant = $1 and thread = $2 and moves_thread and is_held and not exists (
                select 1 from run_queue where tenant = $1 and thread = $2 and moves_thread and not is_held)
            order by run_id
            limit 1";
    let mut release = Statement::with(OPERATION, begin, values![tenant, thread]);
    // From now on it waits for a worker.
    release.push(E::TIME);
    release.push(statement);
    // Locks the run, so that a cancelled run that another transaction is ending is not released.
    release.push(E::LOCK);
    release.push(")");
    Ok(connection.execute(release).await? > 0)
}

/// Removes a run from the queue, with its journal. Ends its waiting messages.
const QUEUE_LEAVE: [&str; 3] = [
    "delete from run_queue where tenant = $1 and run_id = $2",
    "delete from run_journal where tenant = $1 and run_id = $2",
    "update run_messages set status = 'too_late' where tenant = $1 and run_id = $2 and status = 'received'",
];

/// Opens the calls again that a run was to answer.
const CALLS_REOPEN: &str =
    "update runs set status = 'waiting', answer_run_id = null where tenant = $1 and answer_run_id = $2";

/// Removes a run from the queue, with the data for further attempts. If it has no session, the
/// calls that it was to answer are open again. On PostgreSQL, `commit_statement.rs` does so for all
/// runs with a readable record.
pub(crate) async fn queue_leave(
    connection: &mut Connection<'_>,
    lease: &LeaseKey,
    has_session: bool,
) -> Result<(), sqlx::Error> {
    let reopen = (!has_session).then_some(CALLS_REOPEN);
    for statement in QUEUE_LEAVE.into_iter().chain(reopen) {
        let leave = Statement::with(OPERATION, statement, values![&lease.tenant, lease.run_id]);
        connection.execute(leave).await?;
    }
    Ok(())
}

/// Inserts the events of a run that has ended, if any are not stored yet.
pub(crate) async fn events_insert(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
) -> Result<(), sqlx::Error> {
    if let Some(events) = &end.events {
        let insert = events_statement(tenant, end.run.row.run_id, events);
        connection.execute(insert).await?;
    }
    Ok(())
}

/// Inserts events of a run.
pub(crate) fn events_statement<'v>(tenant: &'v TenantId, run_id: Uuid, events: &'v NewEvents) -> Statement<'v> {
    let begin = "insert into run_events (tenant, run_id, ";
    let mut insert = Statement::with(OPERATION, begin, values![tenant, run_id]);
    insert.push_columns(events);
    insert.push(") values ($1, $2, ");
    insert.push_values(events);
    insert.push(concat!(")", events_conflict!()));
    insert
}
