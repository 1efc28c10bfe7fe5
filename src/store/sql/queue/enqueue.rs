//! Accepts runs: the record, the queue row and the idempotency key, all or nothing.
//!
//! *Threads.* One run at a time is active on a thread. Accepting a run on a thread and ending one
//! both begin with an advisory lock on the thread's name. So the end of the active run sees who
//! waits, and a new run sees whether one is active. Waiting runs are held in the queue. The end of
//! the active run releases the first of them.

use uuid::Uuid;

use super::acceptance::insert;
use super::idempotency::key_lookup;
use crate::ids::{RunId, SessionId};
use crate::record::{RunControl, ThreadName};
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{Enqueued, IfBusy, KnownRequest, Lease, NewQueuedRun};
use crate::store::rows::{StoredTime, from_row};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;

/// The fence of the lease that a run is accepted with.
const FIRST_FENCE: u32 = 1;

/// What became of an attempt to accept a run.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// It is in the queue.
    Accepted {
        /// Whether it is leased.
        is_leased: bool,
        /// The run that was told to stop.
        interrupted: Option<RunId>,
    },
    /// The thread has another active run.
    ThreadBusy(RunId),
    /// An earlier request has the key, or had it a moment ago.
    KeyTaken,
    /// The tenant has as many runs waiting as it may.
    TenantFull,
    /// What it was to continue is not there.
    MissingBase(SessionId),
    /// There is a run of this id, or one that has reserved its session.
    Exists,
}

/// A run that can't be accepted.
#[derive(Debug, thiserror::Error)]
#[error("a run of this id has ended, or another has reserved its session")]
struct RunExists;

/// Accepts a run. A repeated attempt whose first one took effect is answered as that one was.
pub(super) async fn run_enqueue(engine: &impl Engine, run: &NewQueuedRun) -> Result<Enqueued, StoreError> {
    loop {
        match engine.run_insert(NewQueueRow::make(run).await?).await? {
            Attempt::Accepted { is_leased, interrupted } => {
                let lease = is_leased.then(|| lease_of(run));
                return Ok(Enqueued::Accepted { lease, interrupted });
            }
            Attempt::ThreadBusy(active) => return Ok(Enqueued::ThreadBusy(active)),
            Attempt::KeyTaken => {
                if let Some(known) = known_request(engine, run).await? {
                    return Ok(earlier(engine, run)
                        .await?
                        .filter(|_| is_own(run, &known))
                        .unwrap_or(Enqueued::Known(known)));
                }
                // It expired and was swept in between: the next attempt gets it.
            }
            Attempt::TenantFull => return repeated(engine, run).await,
            Attempt::MissingBase(base) => return Ok(Enqueued::MissingBase(base)),
            Attempt::Exists => return earlier(engine, run).await?.ok_or_else(exists),
        }
    }
}

/// Accepts a run in a transaction that holds nothing yet.
pub(crate) async fn enqueue_in_txn(
    mut connection: Connection<'_>,
    mut row: NewQueueRow,
) -> Result<Ended<Attempt>, sqlx::Error> {
    let mut interrupted = None;
    if let Some(thread) = row.thread.clone() {
        connection.thread_lock(row.tenant.as_str(), thread.as_str()).await?;
        let Some(found) = look(&mut connection, &row, &thread).await? else {
            return Err(sqlx::Error::RowNotFound);
        };
        // A repeated request is answered with its own run, which may be the one that is active.
        if found.is_key_taken {
            return Ok(Ended::Undone(Attempt::KeyTaken));
        }
        // A run that was planned from elsewhere begins when a worker has planned it again.
        if found.session_id != row.run.base_session_id {
            row = row.unleased();
        }
        match (row.if_busy, found.active.map(RunId::from_uuid)) {
            (_, None) | (IfBusy::Fork, _) => (),
            (IfBusy::Reject, Some(active)) => return Ok(Ended::Undone(Attempt::ThreadBusy(active))),
            (IfBusy::Queue, Some(_)) => row = row.held(),
            (IfBusy::Interrupt, Some(active)) => {
                connection.execute(stop_statement(&row, active)).await?;
                interrupted = Some(active);
                row = row.held();
            }
        }
    }
    if row.lease.is_none()
        && let Some(limit) = row.max_waiting
        && is_tenant_full(&mut connection, &row, limit).await?
    {
        return Ok(Ended::Undone(Attempt::TenantFull));
    }
    if let Some(in_the_way) = insert(&mut connection, &row).await? {
        return Ok(Ended::Undone(in_the_way));
    }
    let accepted = Attempt::Accepted {
        is_leased: row.lease.is_some(),
        interrupted,
    };
    Ok(if row.is_free() || interrupted.is_some() {
        Ended::KeptForWorkers(accepted)
    } else {
        Ended::Kept(accepted)
    })
}

/// What a run meets that is to be accepted on a thread.
#[derive(Debug)]
struct ThreadRow {
    /// Where the thread points to.
    session_id: Option<Uuid>,
    /// The run that others on the thread wait for.
    active: Option<Uuid>,
    /// Whether an earlier request has the key.
    is_key_taken: bool,
}

from_row!(ThreadRow {
    session_id,
    active,
    is_key_taken,
});

/// Looks what a run meets on its thread. Whoever moves the thread waits until the run is accepted, which may continue what the thread
/// points to.
macro_rules! look {
    ($share:literal) => {
        concat!(
            "select
                (select session_id from threads where tenant = $1 and name = $2",
            $share,
            ") as session_id,
                (select run_id from run_queue
                    where tenant = $1 and thread = $2 and moves_thread
                    order by is_held, run_id
                    limit 1) as active,
                exists (
                    select 1 from idempotency_keys where tenant = $1 and key = $3 and expires_at > $4) as is_key_taken"
        )
    };
}

async fn look(
    connection: &mut Connection<'_>,
    row: &NewQueueRow,
    thread: &ThreadName,
) -> Result<Option<ThreadRow>, sqlx::Error> {
    let statement = match connection {
        Connection::Postgres(_) => look!(" for share"),
        Connection::Sqlite(_) => look!(""),
    };
    let key = row.idempotency.as_ref();
    let look = Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(thread.as_str())
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| StoredTime(key.claimed_at)));
    connection.fetch_optional(look).await
}

/// Tells whether the tenant has as many runs waiting as it may. No other request of the tenant is accepted until this transaction ends.
async fn is_tenant_full(connection: &mut Connection<'_>, row: &NewQueueRow, limit: u32) -> Result<bool, sqlx::Error> {
    connection.tenant_lock(row.tenant.as_str()).await?;
    let statement = "select count(*) from (
            select 1 from run_queue where tenant = $1 and leased_until is null limit $2
        ) waiting";
    let count = Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(i64::from(limit));
    let waiting: Option<(i64,)> = connection.fetch_optional(count).await?;
    Ok(waiting.is_some_and(|(waiting,)| waiting >= i64::from(limit)))
}

/// Answers a request that finds no room: a repeated one is answered as the first was.
async fn repeated(engine: &impl Engine, run: &NewQueuedRun) -> Result<Enqueued, StoreError> {
    if let Some(first) = earlier(engine, run).await? {
        return Ok(first);
    }
    let known = known_request(engine, run).await?;
    Ok(known.map_or(Enqueued::TenantFull, Enqueued::Known))
}

async fn known_request(engine: &impl Engine, run: &NewQueuedRun) -> Result<Option<KnownRequest>, StoreError> {
    match &run.idempotency {
        Some(key) => key_lookup(engine, &run.tenant, &key.key).await,
        None => Ok(None),
    }
}

fn exists() -> StoreError {
    StoreError::Failed {
        operation: OPERATION,
        source: RunExists.into(),
    }
}

fn is_own(run: &NewQueuedRun, known: &KnownRequest) -> bool {
    known.resource_id == run.summary.run_id.as_uuid()
}

/// A run in the queue and who works on it.
#[derive(Debug)]
struct OwnerRow {
    fence: i64,
    owner: Option<String>,
}

from_row!(OwnerRow { fence, owner });

/// Answers as the attempt did that has put this very run into the queue; `None` when it is not there.
async fn earlier(engine: &impl Engine, run: &NewQueuedRun) -> Result<Option<Enqueued>, StoreError> {
    let statement = "select fence, owner from run_queue where tenant = $1 and run_id = $2";
    let row: Option<OwnerRow> = Statement::new(OPERATION, statement)
        .bind(run.tenant.as_str())
        .bind(run.summary.run_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    Ok(row.map(|row| {
        let wanted = run.lease.map(|terms| terms.worker.to_string());
        // A later lease is that of an attempt at work.
        let is_leased = wanted.is_some() && row.owner == wanted && row.fence == i64::from(FIRST_FENCE);
        Enqueued::Accepted {
            lease: is_leased.then(|| lease_of(run)),
            interrupted: None,
        }
    }))
}

/// The lease that a run is accepted with.
fn lease_of(run: &NewQueuedRun) -> Lease {
    Lease {
        tenant: run.tenant.clone(),
        run_id: run.summary.run_id,
        fence: u64::from(FIRST_FENCE),
    }
}

fn stop_statement(row: &NewQueueRow, run_id: RunId) -> Statement<'_> {
    let statement = "update run_queue set control = $3 where tenant = $1 and run_id = $2 and control is null";
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(run_id.as_uuid())
        .bind(RunControl::Stop.as_str())
}
