//! The end of queued runs: writes the record and what belongs to it, and releases the next run of
//! the thread.

use uuid::Uuid;

use super::events::events_conflict;
use super::messages::apply_on_conn;
use crate::ids::RunId;
use crate::record::{RunStatus, receiver_of};
use crate::store::error::StoreError;
use crate::store::new_end::{NewEnd, NewEvents};
use crate::store::rows::{LeaseKey, StoredTime};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::runs::run_insert_statement;
use crate::store::sql::statement::Statement;
use crate::store::traits::{Recorded, RunEnd};
use crate::tenant::TenantId;

const OPERATION: &str = "record run";

/// Stores the end of a run that publishes nothing.
pub(crate) async fn run_record(engine: &impl Engine, tenant: &TenantId, end: &RunEnd) -> Result<Recorded, StoreError> {
    let end = NewEnd::make(tenant, end).await.map_err(|error| StoreError::Failed {
        operation: OPERATION,
        source: error.into(),
    })?;
    if end.is_record_only() {
        let inserted = run_insert_statement(OPERATION, tenant, &end.run)
            .execute(engine)
            .await?;
        return Ok(if inserted > 0 { Recorded::Now } else { Recorded::Before });
    }
    let (owned, run_id, is_leased) = (tenant.clone(), end.run.run_id, end.lease.is_some());
    if engine
        .transact(OPERATION, move |connection| {
            Box::pin(record_in_txn(connection, owned, end))
        })
        .await?
    {
        return Ok(Recorded::Now);
    }
    if is_leased && !has_ended(engine, tenant, run_id).await? {
        return Ok(Recorded::LeaseLost);
    }
    Ok(Recorded::Before)
}

/// Tells whether it was this attempt that has ended the run.
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
        return Ok(Ended::Undone(false));
    };
    end_insert(&mut connection, &tenant, &end, None).await?;
    Ok(if is_next_released {
        Ended::KeptForWorkers(true)
    } else {
        Ended::Kept(true)
    })
}

async fn has_ended(engine: &impl Engine, tenant: &TenantId, run_id: Uuid) -> Result<bool, StoreError> {
    let statement = "select status from runs where tenant = $1 and run_id = $2";
    let row: Option<(String,)> = Statement::new(OPERATION, statement)
        .bind_run_key(tenant, RunId::from_uuid(run_id))
        .fetch_optional(engine)
        .await?;
    let status = row.and_then(|(status,)| status.parse::<RunStatus>().ok());
    Ok(status.is_some_and(RunStatus::is_terminal))
}

/// What the end of a lease has come to.
#[derive(Debug, Default)]
pub(crate) struct LeaseEnd {
    /// Whether a run that has waited for the thread may begin.
    pub(crate) is_next_released: bool,
}

/// Takes a run out of the queue and lets the next one on its thread begin; `None` if the lease was not in force. From then on nobody else
/// writes anything of the run, and what others have written of it can be read.
///
/// The next one is released before the thread moves: a lease locks rows of the queue first, and then those of threads.
pub(crate) async fn lease_end(
    connection: &mut Connection<'_>,
    lease: &LeaseKey,
    thread: Option<&str>,
) -> Result<Option<LeaseEnd>, sqlx::Error> {
    if let Some(thread) = thread {
        connection.thread_lock(&lease.tenant, thread).await?;
    }
    let statement = "delete from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let delete = Statement::new(OPERATION, statement).bind_key(lease);
    if connection.execute(delete).await? == 0 {
        return Ok(None);
    }
    let mut end = LeaseEnd::default();
    if let Some(thread) = thread {
        let release = release_statement(&lease.tenant, thread);
        end.is_next_released = connection.execute(release).await? > 0;
    }
    Ok(Some(end))
}

/// Writes what is left to say of a run that has ended, once its row of the queue is gone.
pub(crate) async fn end_insert(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
    thread_moved: Option<bool>,
) -> Result<(), sqlx::Error> {
    if end.lease.is_some() {
        run_end(connection, tenant, end, thread_moved).await?;
    }
    if let Some(events) = &end.events {
        let insert = events_statement(tenant, end.run.run_id, events);
        connection.execute(insert).await?;
    }
    for (delivery, payload) in &end.deliveries {
        let receiver = receiver_of(&delivery.url);
        let statement = "insert into webhook_deliveries (
                tenant, delivery_id, run_id, event, url, receiver, secret, created_at, due_at, status, schema_version,
                encoding, payload)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $8, 'pending', $9, $10, $11)";
        let insert = Statement::new(OPERATION, statement)
            .bind(tenant.as_str())
            .bind(delivery.delivery_id.as_uuid())
            .bind(end.run.run_id)
            .bind(delivery.event.as_str())
            .bind(delivery.url.as_str())
            .bind(receiver.as_str())
            .bind(delivery.secret.as_deref())
            .bind(StoredTime(delivery.created_at))
            .bind_payload(Some(payload));
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

/// What goes with a run's place in the queue.
pub(super) const AFTERMATH: [&str; 2] = [journal_delete!(), messages_end!()];

macro_rules! run_update {
    () => {
        "update runs set
            session_id = $3, base_session_id = $4, agent = $5, agent_version = $6, model = $7, mode = $8, status = $9,
            stop_reason = $10, input_tokens = $11, output_tokens = $12, cache_read_tokens = $13,
            cache_write_tokens = $14, reasoning_tokens = $15, total_tokens = $16, cost = $17, step_count = $18,
            error = $19, metadata = $20, created_at = $21, started_at = $22, completed_at = $23, schema_version = $24,
            output_encoding = $25, steps_encoding = $26, output = $27, steps = $28, event_count = $29, attempts = $30,
            durability = $31, thread = $32, cost_known_part = $33, answered_by = $34, thread_moved = $35
        where tenant = $1 and run_id = $2"
    };
}

/// Gives the record its final form and drops what was kept for another worker: at once where that is possible.
async fn run_end(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    end: &NewEnd,
    thread_moved: Option<bool>,
) -> Result<(), sqlx::Error> {
    apply_on_conn(connection, tenant, RunId::from_uuid(end.run.run_id), &end.applied).await?;
    let update = match connection {
        Connection::Postgres(_) => concat!(
            "with journal as (",
            journal_delete!(),
            "), messages as (",
            messages_end!(),
            ") ",
            run_update!()
        ),
        Connection::Sqlite(_) => {
            let run_id = RunId::from_uuid(end.run.run_id);
            for statement in AFTERMATH {
                let statement = Statement::new(OPERATION, statement).bind_run_key(tenant, run_id);
                connection.execute(statement).await?;
            }
            run_update!()
        }
    };
    let update = Statement::new(OPERATION, update)
        .bind(tenant.as_str())
        .bind_run(Some(&end.run))
        .bind(thread_moved);
    match connection.execute(update).await? {
        // A run in the queue has a record.
        0 => Err(sqlx::Error::RowNotFound),
        _ => Ok(()),
    }
}

/// Lets the run begin that has waited longest for the thread, unless another is active.
fn release_statement<'v>(tenant: &'v str, thread: &'v str) -> Statement<'v> {
    let statement = "update run_queue set is_held = false
        where tenant = $1 and run_id = (
            select run_id from run_queue
            where tenant = $1 and thread = $2 and moves_thread and is_held and not exists (
                select 1 from run_queue where tenant = $1 and thread = $2 and moves_thread and not is_held)
            order by run_id
            limit 1)";
    Statement::new(OPERATION, statement).bind(tenant).bind(thread)
}

fn events_statement<'v>(tenant: &'v TenantId, run_id: Uuid, events: &'v NewEvents) -> Statement<'v> {
    let statement = concat!(
        "insert into run_events (
            tenant, run_id, first_sequence, last_sequence, created_at, schema_version, encoding, payload)
        values ($1, $2, $3, $4, $5, $6, $7, $8)",
        events_conflict!()
    );
    Statement::new(OPERATION, statement)
        .bind(tenant.as_str())
        .bind(run_id)
        .bind_events(events)
}
