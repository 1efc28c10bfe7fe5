//! Accepts runs on PostgreSQL. One statement inserts all rows of a run, all or nothing. It runs in
//! a transaction if the run is on a thread, or if the tenant's waiting runs are limited.
//!
//! A thread has one active run, which the unique index `run_queue_active` enforces. A new run that
//! waits for the active one locks its row, so that the active run sees the new one when it ends. A
//! new run that does not wait locks nothing of the thread, since many such runs would delay the end
//! of the active one. If no run is active and two runs are accepted at the same time, one of them
//! violates the index and tries again. Rows of the queue are locked before rows of threads, as at
//! the end of a run and in a lease. One order is the other way around: a new run that has found
//! none active holds the thread when it waits for one that the end of a run makes active at this
//! moment. If that end moves the thread as well, PostgreSQL ends one of the two, which tries again.

use super::super::PostgresStore;
use super::super::timeouts::in_time;
use crate::store::driver_error::{is_deadlock, is_unique_violation, is_violation_of, store_error};
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::IfBusy;
use crate::store::rows::{Value, values};
use crate::store::sql::{
    Attempt, BuiltOnce, Connection, Ended, Engine as _, Statement, admit_in_txn, ended, next_turn,
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
    // The run may have been accepted although the response was lost.
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

/// Waits for a turn if the run may have to wait for the row of its tenant or for its thread. So all
/// waiting requests of a tenant or a thread hold one connection.
async fn acceptance_turn(store: &PostgresStore, row: &NewQueueRow) -> Option<Turn<(TenantId, String)>> {
    let thread = row.thread().map(ToOwned::to_owned);
    let waits_for = match row.max_waiting {
        // The empty string stands for the tenant, since no thread has this name.
        Some(_) if thread.is_some() || !row.is_leased() => Some(String::new()),
        _ => thread,
    };
    match waits_for {
        Some(name) => Some(store.accepting.take((row.tenant.clone(), name)).await),
        None => None,
    }
}

async fn accept_in_txn(mut connection: Connection<'_>, row: NewQueueRow) -> Result<Ended<Attempt>, sqlx::Error> {
    let run = match admit_in_txn(&mut connection, row, thread_statement, Some(TENANT_LOCK)).await? {
        Ok(run) => run,
        Err(conflict) => return Ok(Ended::RolledBack(conflict)),
    };
    let conflict = rows_insert(&mut connection, &run.row).await?;
    Ok(ended(&run, conflict))
}

/// Locks the row of a tenant, so that no other request of the tenant is accepted before the
/// transaction has ended. Does not write an existing row.
const TENANT_LOCK: &str = "insert into limited_tenants (tenant) values ($1)
    on conflict (tenant) do update set tenant = excluded.tenant where false";

macro_rules! thread_state {
    ($tables:literal) => {
        concat!(
            $tables,
            " select
                (select run_id from active) as active,
                (select session_id from pointer) as session_id,
                exists (
                    select 1 from idempotency_keys where tenant = $1 and key = $3 and expires_at > $4) as is_key_taken"
        )
    };
}

/// Reads the state of the thread for a run that may wait there. The active run can't end, and the
/// thread can't move, until the transaction has ended. The condition on `active` makes it lock that
/// row first.
const LOCKED_THREAD: &str = thread_state!(
    "with active as materialized (
        select run_id from run_queue
        where tenant = $1 and thread = $2 and moves_thread and not is_held
        for key share
    ), pointer as materialized (
        select session_id from threads
        where tenant = $1 and name = $2 and (select count(*) from active) >= 0
        for share
    )"
);

/// Reads the state of the thread for a run that does not wait. If another run is active, locks
/// nothing of the thread: the new run is either refused or a fork. For a fork, locks the session
/// from which it begins in share mode, so that no removal deletes it. If no run is active, locks
/// the thread, so that it can't move.
const THREAD: &str = thread_state!(
    "with active as materialized (
        select run_id from run_queue where tenant = $1 and thread = $2 and moves_thread and not is_held
    ), free as materialized (
        select session_id from threads
        where tenant = $1 and name = $2 and (select count(*) from active) = 0
        for share
    ), forked as materialized (
        select s.session_id from threads t
        join sessions s on s.tenant = t.tenant and s.session_id = t.session_id
        where t.tenant = $1 and t.name = $2 and (select count(*) from active) > 0
        for share of s
    ), pointer as (
        select session_id from free
        union all
        select session_id from forked
    )"
);

fn thread_statement(row: &NewQueueRow) -> Statement<'_> {
    let statement = match row.if_busy {
        IfBusy::Reject | IfBusy::Fork => THREAD,
        IfBusy::Queue | IfBusy::Interrupt => LOCKED_THREAD,
    };
    Statement::with(OPERATION, statement, row.thread_values())
}

/// Begins the insertion of a run. Locks the row of the base session in share mode. Accepts nothing
/// if the base was removed or the key is taken. A run on a thread needs no base: it continues the
/// session to which the thread points when it begins.
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
        select $1, $4, null, 0, $5, $5 from accepted
        where $4 is not null and not exists (select 1 from threads where tenant = $1 and name = $4)
        on conflict (tenant, name) do nothing
    ), run as (
        insert into runs (tenant, ";

const QUEUE: &str = " from accepted
    ), queued as (
        insert into run_queue (tenant, turn, ";

const ACCEPTED: &str = " from accepted
    )
    select exists (select from based) as has_base, exists (select from accepted) as is_accepted";

/// Inserts the rows of a run. Returns the conflict, if there is one.
async fn rows_insert(connection: &mut Connection<'_>, row: &NewQueueRow) -> Result<Option<Attempt>, sqlx::Error> {
    let inserted: Result<Option<(bool, bool)>, sqlx::Error> = connection.fetch_optional(accept_statement(row)).await;
    match inserted {
        Ok(Some((has_base, is_accepted))) => Ok(match row.needed_base() {
            Some(base) if !has_base => Some(Attempt::MissingBase(base)),
            _ => (!is_accepted).then_some(Attempt::KeyTaken),
        }),
        Ok(None) => Err(sqlx::Error::RowNotFound),
        Err(error) if is_violation_of(&error, ACTIVE_INDEX) || is_deadlock(&error) => Ok(Some(Attempt::ThreadRaced)),
        Err(error) if is_unique_violation(&error) => Ok(Some(Attempt::Exists)),
        Err(error) => Err(error),
    }
}

fn accept_statement(row: &NewQueueRow) -> Statement<'_> {
    static TEXT: BuiltOnce = BuiltOnce::new();
    let text = TEXT.text(|| build_accept(row));
    let accept = Statement::with(OPERATION, text, accept_values(row));
    accept.bind_row(&row.run).bind_row(&row.queue)
}

fn accept_values(row: &NewQueueRow) -> Vec<Value<'_>> {
    let key = row.idempotency.as_ref();
    values![
        &row.tenant,
        row.queue.run_id,
        row.run.row.base_session_id,
        row.thread(),
        row.queue.enqueued_at,
        row.queue.level,
        key.map(|key| key.key.as_str()),
        key.map(|key| &key.digest),
        key.map(|key| key.expires_at),
        key.map(|key| key.claimed_at)
    ]
}

fn build_accept(row: &NewQueueRow) -> Statement<'_> {
    let mut accept = Statement::with(OPERATION, ACCEPT, accept_values(row));
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
