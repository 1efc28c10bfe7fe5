//! Accepting runs on PostgreSQL: one statement inserts all rows of a run, all or nothing. A run on
//! a thread, or of a tenant whose waiting runs are limited, takes a transaction around it.
//!
//! A thread has one active run: the unique index `run_queue_active` arbitrates. A run that is
//! accepted behind the active one locks its row, so that the end of that run sees the new one.
//! Where no run is active, of two that are accepted at once one violates the index, and tries
//! again. Rows are locked in the order in which the end of a run and a lease lock them: those of
//! the queue before those of threads.

use super::super::PostgresStore;
use super::super::timeouts::in_time;
use crate::store::driver_error::{is_unique_violation, is_violation_of, store_error};
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::rows::StoredTime;
use crate::store::sql::{
    Attempt, Connection, Ended, Engine as _, PlacedRun, Statement, ThreadState, accepted, next_turn, place_on_thread,
    stop_statement, waiting_statement,
};
use crate::store::turns::Turn;
use crate::tenant::TenantId;

/// The unique index of the active runs of threads.
const ACTIVE_INDEX: &str = "run_queue_active";

/// Accepts a run.
pub(in crate::store::postgres) async fn run_insert(
    store: &PostgresStore,
    row: NewQueueRow,
) -> Result<Attempt, StoreError> {
    if row.thread().is_some() || row.max_waiting.is_some() {
        let waiting = async { Ok::<_, sqlx::Error>(acceptance_turn(store, &row).await) };
        let turn = in_time(waiting).await.map_err(store_error(OPERATION))?;
        return store
            .transact(OPERATION, move |connection| {
                Box::pin(async move {
                    let _turn = turn;
                    accept_in_txn(connection, row).await
                })
            })
            .await;
    }
    let inserting = in_time(async {
        let mut connection = store.pool.acquire().await?;
        rows_insert(&mut Connection::Postgres(&mut connection), &row).await
    });
    let inserted = inserting.await;
    // One whose response is lost may have been accepted.
    if row.is_free() && !matches!(inserted, Ok(Some(_))) {
        store.wake_ups.send();
    }
    if let Some(conflict) = inserted.map_err(store_error(OPERATION))? {
        return Ok(conflict);
    }
    Ok(Attempt::Accepted {
        is_leased: row.is_leased(),
        interrupted: None,
    })
}

/// Waits for a turn to accept a run that may have to wait for the row of its tenant or for its
/// thread. So the waiting requests hold one connection in all.
async fn acceptance_turn(store: &PostgresStore, row: &NewQueueRow) -> Option<Turn<(TenantId, String)>> {
    let thread = row.thread().map(ToOwned::to_owned);
    let waits_for = match row.max_waiting {
        // No thread has this name.
        Some(_) if thread.is_some() || !row.is_leased() => Some(String::new()),
        _ => thread,
    };
    match waits_for {
        Some(name) => Some(store.accepting.take((row.tenant.clone(), name)).await),
        None => None,
    }
}

async fn accept_in_txn(mut connection: Connection<'_>, row: NewQueueRow) -> Result<Ended<Attempt>, sqlx::Error> {
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
        && is_tenant_full(&mut connection, &run.row, limit).await?
    {
        return Ok(Ended::RolledBack(Attempt::TenantFull));
    }
    if let Some(conflict) = rows_insert(&mut connection, &run.row).await? {
        return Ok(Ended::RolledBack(conflict));
    }
    Ok(accepted(&run))
}

/// Reads the state of the thread. The active run can't end, and the thread can't move, until the
/// transaction has ended. The condition on `active` makes it lock that row first.
fn thread_statement(row: &NewQueueRow) -> Statement<'_> {
    let statement = "with active as materialized (
            select run_id from run_queue
            where tenant = $1 and thread = $2 and moves_thread and not is_held
            for key share
        ), pointer as materialized (
            select session_id from threads
            where tenant = $1 and name = $2 and (select count(*) from active) >= 0
            for share
        )
        select
            (select run_id from active) as active,
            (select session_id from pointer) as session_id,
            exists (
                select 1 from idempotency_keys where tenant = $1 and key = $3 and expires_at > $4) as is_key_taken";
    let key = row.idempotency.as_ref();
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(row.thread())
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| StoredTime(key.claimed_at)))
}

/// Tells whether the tenant has as many waiting runs as it may. Locks the row of the tenant, so
/// that no other request of the tenant is accepted before this transaction ends.
async fn is_tenant_full(connection: &mut Connection<'_>, row: &NewQueueRow, limit: u32) -> Result<bool, sqlx::Error> {
    // An existing row is locked and not written.
    let lock = "insert into limited_tenants (tenant) values ($1)
        on conflict (tenant) do update set tenant = excluded.tenant where false";
    connection
        .execute(Statement::new(OPERATION, lock).bind(row.tenant.as_str()))
        .await?;
    // A statement of its own, so that it counts the runs of requests that had the lock before.
    let waiting: Option<(i64,)> = connection.fetch_optional(waiting_statement(row, limit)).await?;
    Ok(waiting.is_some_and(|(waiting,)| waiting >= i64::from(limit)))
}

/// Begins the insertion of a run. Shares the row of the base session, and accepts nothing if that
/// was removed or the key is taken. A run on a thread continues what the thread points to when it
/// begins.
const ACCEPT: &str = "with base as (
        select 1 from sessions where tenant = $1 and session_id = $3 for share
    ), based as (
        select 1 where $4 is not null or $3 is null or exists (select from base)
    ), claimed as (
        insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        select $1, $7, $2, $8, $9 from based where $7 is not null
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= $10
        returning 1
    ), accepted as (
        select 1 from based where $7 is null or exists (select from claimed)
    ), made as (
        insert into threads (tenant, name, session_id, version, created_at, updated_at)
        select $1, $4, null, 0, $5, $5 from accepted where $4 is not null
        on conflict (tenant, name) do nothing
    ), run as (
        insert into runs (tenant, ";

const QUEUE: &str = " from accepted
    ), queued as (
        insert into run_queue (tenant, turn, ";

const ACCEPTED: &str = " from accepted
    )
    select exists (select from based) as has_base, exists (select from accepted) as is_accepted";

/// Inserts the rows of a run; returns the conflict, if there is one.
async fn rows_insert(connection: &mut Connection<'_>, row: &NewQueueRow) -> Result<Option<Attempt>, sqlx::Error> {
    let inserted: Result<Option<(bool, bool)>, sqlx::Error> = connection.fetch_optional(accept_statement(row)).await;
    match inserted {
        Ok(Some((has_base, is_accepted))) => Ok(match row.needed_base() {
            Some(base) if !has_base => Some(Attempt::MissingBase(base)),
            _ => (!is_accepted).then_some(Attempt::KeyTaken),
        }),
        Ok(None) => Err(sqlx::Error::RowNotFound),
        Err(error) if is_violation_of(&error, ACTIVE_INDEX) => Ok(Some(Attempt::ThreadRaced)),
        Err(error) if is_unique_violation(&error) => Ok(Some(Attempt::Exists)),
        Err(error) => Err(error),
    }
}

fn accept_statement(row: &NewQueueRow) -> Statement<'_> {
    let key = row.idempotency.as_ref();
    let mut accept = Statement::new(OPERATION, ACCEPT)
        .bind(row.tenant.as_str())
        .bind(row.queue.run_id)
        .bind(row.run.row.base_session_id)
        .bind(row.thread())
        .bind(row.queue.enqueued_at)
        .bind(row.queue.level)
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| key.digest.as_bytes().as_slice()))
        .bind(key.map(|key| StoredTime(key.expires_at)))
        .bind(key.map(|key| StoredTime(key.claimed_at)));
    accept.push_columns(&row.run);
    accept.push(") select $1, ");
    accept.push_values(&row.run);
    accept.push(QUEUE);
    accept.push_columns(&row.queue);
    accept.push(concat!(") select $1, ", next_turn!("$1", "$6"), ", "));
    accept.push_values(&row.queue);
    accept.push(ACCEPTED);
    accept
}
