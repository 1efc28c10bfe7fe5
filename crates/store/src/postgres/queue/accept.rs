//! Accepts runs on PostgreSQL. One statement inserts all rows of a run, all or nothing
//! (`postgres/enqueue.rs`). The committer executes it for several runs at once. It runs in a
//! transaction of its own if the run is on a thread or answers open calls, or if the tenant's
//! waiting runs are limited.
//!
//! A thread has one active run, which the unique index `run_queue_active` enforces. A new run that
//! waits for the active one locks its row, so that the active run sees the new one when it ends. A
//! new run that does not wait locks nothing of the thread, since many such runs would delay the end
//! of the active one. If no run is active and two runs are accepted at the same time, one of them
//! violates the index and tries again.
//!
//! All statements lock rows of the queue before rows of threads, with one exception: a new run that
//! has found no active one locks the thread first, and may then wait for a row of the queue. This
//! can be a deadlock with the end of another run. Then PostgreSQL fails one of the two
//! transactions, and that one is repeated.

use sqlx::PgConnection;

use super::super::PostgresStore;
use super::super::batch_write::{BatchWrite as _, Outcome};
use super::super::enqueue::Inserted;
use super::super::timeouts::in_time;
use crate::driver_error::{is_deadlock, is_unique_violation, is_violation_of, store_error};
use crate::error::StoreError;
use crate::new_queued_run::{NewQueueRow, OPERATION};
use crate::queue::IfBusy;
use crate::rows::values;
use crate::sql::{Attempt, Connection, Ended, Engine as _, Statement, admit_in_txn, answer_in_txn, ended};
use tasks::keyed::Turn;
use values::tenant::TenantId;

/// The unique index of the active runs of threads.
const ACTIVE_INDEX: &str = "run_queue_active";

/// Accepts a run.
pub(in crate::postgres) async fn run_insert(store: &PostgresStore, row: NewQueueRow) -> Result<Attempt, StoreError> {
    if row.thread().is_some() || row.max_waiting.is_some() || row.answer.is_some() {
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
    let (row, outcome) = store.committer.run_insert(row).await?;
    let inserted = match outcome {
        Outcome::Decided(inserted) => Ok(inserted),
        Outcome::Failed(error) => Err(error),
        Outcome::Undecided => in_time(insert_alone(store, &row)).await,
    };
    // The run may have been accepted although the response was lost.
    if row.is_free() && !matches!(inserted, Ok(Inserted::MissingBase | Inserted::KeyTaken)) {
        store.wake_ups.send();
    }
    let conflict = match inserted {
        Ok(inserted) => conflict(inserted, &row),
        Err(error) => Some(conflict_of(error).map_err(store_error(OPERATION))?),
    };
    Ok(conflict.unwrap_or(Attempt::Accepted {
        is_leased: row.is_leased(),
        interrupted: None,
    }))
}

async fn insert_alone(store: &PostgresStore, row: &NewQueueRow) -> Result<Inserted, sqlx::Error> {
    let mut connection = store.pool.acquire().await?;
    rows_insert(&mut connection, row).await
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
    let Connection::Postgres(connection) = connection else {
        return Err(sqlx::Error::WorkerCrashed);
    };
    let mut conflict = match rows_insert(connection, &run.row).await {
        Ok(inserted) => conflict(inserted, &run.row),
        Err(error) => Some(conflict_of(error)?),
    };
    if conflict.is_none() && begins_thread(&run.row) && is_set(connection, &run.row).await? {
        conflict = Some(Attempt::ThreadRaced);
    }
    if conflict.is_none() {
        conflict = answer_in_txn(&mut Connection::Postgres(connection), &run.row).await?;
    }
    Ok(ended(&run, conflict))
}

/// Returns whether the run begins at once, and found no thread or one that points to no session.
fn begins_thread(row: &NewQueueRow) -> bool {
    row.thread().is_some() && row.is_leased() && row.run.row.base_session_id.is_none()
}

/// Returns whether the thread points to a session. A caller may have created the thread after the
/// statement looked for it, and nobody can lock a row that does not exist.
async fn is_set(connection: &mut PgConnection, row: &NewQueueRow) -> Result<bool, sqlx::Error> {
    let statement = "select 1 from threads where tenant = $1 and name = $2 and session_id is not null";
    let select = Statement::with(OPERATION, statement, values![&row.tenant, row.thread()]);
    let found: Option<(i32,)> = Connection::Postgres(connection).fetch_optional(select).await?;
    Ok(found.is_some())
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

async fn rows_insert(connection: &mut PgConnection, row: &NewQueueRow) -> Result<Inserted, sqlx::Error> {
    let inserted = NewQueueRow::execute_all(connection, &[row]).await?;
    Ok(inserted.first().copied().unwrap_or_default())
}

/// Returns the conflict of a run that was not inserted.
fn conflict(inserted: Inserted, row: &NewQueueRow) -> Option<Attempt> {
    match inserted {
        Inserted::Accepted => None,
        Inserted::KeyTaken => Some(Attempt::KeyTaken),
        Inserted::MissingBase => row.needed_base().map(Attempt::MissingBase),
    }
}

/// Returns the conflict that an error stands for.
fn conflict_of(error: sqlx::Error) -> Result<Attempt, sqlx::Error> {
    if is_violation_of(&error, ACTIVE_INDEX) || is_deadlock(&error) {
        Ok(Attempt::ThreadRaced)
    } else if is_unique_violation(&error) {
        Ok(Attempt::Exists)
    } else {
        Err(error)
    }
}
