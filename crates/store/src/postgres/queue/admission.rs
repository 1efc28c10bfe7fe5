//! The admission of runs on PostgreSQL that need a transaction of their own: runs on a thread, and
//! runs of tenants whose waiting runs are limited.
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
use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::queue::IfBusy;
use crate::rows::values;
use crate::sql::{Connection, Statement};
use tasks::keyed::Turn;
use values::tenant::TenantId;

/// Waits for a turn if the run may have to wait for the row of its tenant or for its thread. So all
/// waiting requests of a tenant or a thread hold one connection.
pub(super) async fn acceptance_turn(store: &PostgresStore, row: &NewAcceptance) -> Option<Turn<(TenantId, String)>> {
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

/// Returns whether the run follows its thread, begins at once, and found no thread or one that
/// points to no session.
pub(super) fn begins_thread(row: &NewAcceptance) -> bool {
    row.queue.follows_thread && row.is_leased() && row.run.row.base_session_id.is_none()
}

/// Returns whether the thread points to a session. A caller may have created the thread after the
/// statement looked for it, and a row that does not exist can't be locked.
pub(super) async fn is_set(connection: &mut PgConnection, row: &NewAcceptance) -> Result<bool, sqlx::Error> {
    let statement = "select 1 from threads where tenant = $1 and name = $2 and session_id is not null";
    let select = Statement::with(OPERATION, statement, values![&row.tenant, row.thread()]);
    let found: Option<(i32,)> = Connection::Postgres(connection).fetch_optional(select).await?;
    Ok(found.is_some())
}

/// Locks the row of a tenant, so that no other request of the tenant is accepted before the
/// transaction has ended. Does not write an existing row.
pub(super) const TENANT_LOCK: &str = "insert into limited_tenants (tenant) values ($1)
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

pub(super) fn thread_statement(row: &NewAcceptance) -> Statement<'_> {
    let statement = match row.if_busy {
        IfBusy::Reject | IfBusy::Fork => THREAD,
        IfBusy::Queue | IfBusy::Interrupt => LOCKED_THREAD,
    };
    Statement::with(OPERATION, statement, row.thread_values())
}
