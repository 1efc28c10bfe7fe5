//! The end of runs: the rows written with the record, and the next run of the thread.

use async_trait::async_trait;
use uuid::Uuid;

use super::messages::apply_on_conn;
use super::progress::events_conflict;
use crate::error::StoreError;
use crate::new_end::{NewEnd, NewEvents};
use crate::rows::{LeaseKey, values};
use crate::sql::connection::{Connection, Ended};
use crate::sql::engine::Engine;
use crate::sql::runs::run_insert_statement;
use crate::sql::statement::{Statement, insert_statement};
use crate::traits::{Recorded, RunEnd, RunWriter};
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
            Box::pin(record_in_txn(connection, owned, end))
        });
        if recording.await? {
            return Ok(Recorded::Now);
        }
        if is_leased && !has_ended(self, tenant, run_id).await? {
            return Ok(Recorded::LeaseLost);
        }
        Ok(Recorded::Before)
    }
}

/// Ends the run. Returns whether this attempt ended it.
async fn record_in_txn(
    mut connection: Connection<'_>,
    tenant: TenantId,
    end: NewEnd,
) -> Result<Ended<bool>, sqlx::Error> {
    let ended = if let Some(lease) = &end.lease {
        lease_end(&mut connection, lease, end.thread_name()).await?
    } else {
        let insert = run_insert_statement(OPERATION, &tenant, &end.run);
        (connection.execute(insert).await? > 0).then(LeaseEnd::default)
    };
    let Some(LeaseEnd { is_next_released }) = ended else {
        return Ok(Ended::RolledBack(false));
    };
    end_insert(&mut connection, &tenant, &end).await?;
    Ok(if is_next_released {
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

/// The result of ending a lease.
#[derive(Debug, Default)]
pub(crate) struct LeaseEnd {
    /// Whether a run that waited for the thread may now begin.
    pub(crate) is_next_released: bool,
}

/// Deletes a run from the queue and releases the next run on its thread. Returns `None` if the
/// lease was not in force. Afterwards no other worker can write anything of the run, and all
/// earlier writes are visible.
///
/// Releases the next run before the thread moves, since a lease also locks rows of the queue before
/// those of threads.
pub(crate) async fn lease_end(
    connection: &mut Connection<'_>,
    lease: &LeaseKey,
    thread: Option<&str>,
) -> Result<Option<LeaseEnd>, sqlx::Error> {
    let statement = "delete from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let delete = Statement::new(OPERATION, statement).bind_key(lease);
    if connection.execute(delete).await? == 0 {
        return Ok(None);
    }
    let mut end = LeaseEnd::default();
    if let Some(thread) = thread {
        let release = release_statement(connection, &lease.tenant, thread);
        end.is_next_released = connection.execute(release).await? > 0;
    }
    Ok(Some(end))
}

/// Writes the record, the events and the webhooks of a run that has ended. Its row in the queue
/// must already be deleted.
pub(crate) async fn end_insert(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
) -> Result<(), sqlx::Error> {
    if end.lease.is_some() {
        run_end(connection, tenant, end).await?;
    }
    if let Some(events) = &end.events {
        let insert = events_statement(tenant, end.run.row.run_id, events);
        connection.execute(insert).await?;
    }
    for delivery in &end.deliveries {
        let insert = insert_statement(OPERATION, "insert into webhook_deliveries (tenant, ", tenant, delivery);
        connection.execute(insert).await?;
    }
    Ok(())
}

macro_rules! journal_delete {
    () => {
        "delete from run_journal where tenant = $1 and run_id = $2"
    };
}

macro_rules! messages_end {
    () => {
        "update run_messages set status = 'too_late' where tenant = $1 and run_id = $2 and status = 'received'"
    };
}

macro_rules! calls_reopen {
    () => {
        "update runs set status = 'waiting', answer_run_id = null where tenant = $1 and answer_run_id = $2"
    };
}

/// Opens the calls again that a run was to answer, since it ends without a session.
pub(super) const CALLS_REOPEN: &str = calls_reopen!();

/// Removes the journal of a run, and ends its waiting messages.
pub(super) const QUEUE_CLEANUP: [&str; 2] = [journal_delete!(), messages_end!()];

/// Writes the final record and removes the data for further attempts, in one statement if possible.
async fn run_end(connection: &mut Connection<'_>, tenant: &TenantId, end: &NewEnd) -> Result<(), sqlx::Error> {
    let run_id = RunId::from_uuid(end.run.row.run_id);
    apply_on_conn(connection, tenant, run_id, &end.applied).await?;
    let begin = match connection {
        Connection::Postgres(_) if end.is_without_session() => concat!(
            "with journal as (",
            journal_delete!(),
            "), messages as (",
            messages_end!(),
            "), calls as (",
            calls_reopen!(),
            ") "
        ),
        Connection::Postgres(_) => concat!(
            "with journal as (",
            journal_delete!(),
            "), messages as (",
            messages_end!(),
            ") "
        ),
        Connection::Sqlite(_) => {
            let reopen = end.is_without_session().then_some(CALLS_REOPEN);
            for statement in QUEUE_CLEANUP.into_iter().chain(reopen) {
                let cleanup = Statement::with(OPERATION, statement, values![tenant, run_id]);
                connection.execute(cleanup).await?;
            }
            ""
        }
    };
    let mut update = Statement::with(OPERATION, begin, values![tenant, run_id]);
    update.push("update runs set ");
    update.push_assignments(&end.run, "run_id");
    update.push(" where tenant = $1 and run_id = $2");
    match connection.execute(update).await? {
        // A run in the queue always has a record.
        0 => Err(sqlx::Error::RowNotFound),
        _ => Ok(()),
    }
}

/// Releases the run that has waited longest for the thread, unless another run is active.
macro_rules! release {
    ($lock:literal) => {
        concat!(
            "update run_queue set is_held = false
            where tenant = $1 and run_id = (
                select run_id from run_queue
                where tenant = $1 and thread = $2 and moves_thread and is_held and not exists (
                    select 1 from run_queue where tenant = $1 and thread = $2 and moves_thread and not is_held)
                order by run_id
                limit 1",
            $lock,
            ")"
        )
    };
}

fn release_statement<'v>(connection: &Connection<'_>, tenant: &'v str, thread: &'v str) -> Statement<'v> {
    let statement = match connection {
        // Locks the run, so that a cancelled run that another transaction is ending is not
        // released.
        Connection::Postgres(_) => release!(" for update"),
        Connection::Sqlite(_) => release!(""),
    };
    Statement::with(OPERATION, statement, values![tenant, thread])
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
