//! Accepting runs: the record, the place in the queue and the idempotency key, all or nothing.

use uuid::Uuid;

use super::idempotency::{key_claim_statement, key_lookup};
use crate::ids::RunId;
use crate::record::{RunControl, ThreadName};
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{Enqueued, IfBusy, KnownRequest, Lease, NewQueuedRun};
use crate::store::rows::{StoredTime, from_row};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::runs::run_insert_statement;
use crate::store::sql::statement::Statement;

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
        match engine.run_insert(NewQueueRow::new(run)?).await? {
            Attempt::Accepted { is_leased, interrupted } => {
                let lease = is_leased.then(|| lease_of(run, 1));
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
            Attempt::Exists => return earlier(engine, run).await?.ok_or_else(exists),
        }
    }
}

/// Accepts a run in a transaction that holds nothing yet.
pub(crate) async fn enqueue_in_txn(
    mut connection: Connection<'_>,
    mut row: NewQueueRow,
) -> Result<Ended<Attempt>, sqlx::Error> {
    if let Some(thread) = &row.thread {
        connection.thread_lock(&row.tenant, thread).await?;
    }
    if let Some(key) = &row.idempotency {
        let claim = key_claim_statement(&row.tenant, key, row.run.run_id, row.accepted_at);
        if connection.execute(claim).await? == 0 {
            return Ok(Ended::Undone(Attempt::KeyTaken));
        }
    }
    let mut interrupted = None;
    if let Some(thread) = row.thread.clone() {
        connection.execute(thread_insert_statement(&row, &thread)).await?;
        // A run that was planned from elsewhere begins when a worker has planned it again.
        if !begins_at_thread(&mut connection, &row, &thread).await? {
            row = row.unleased();
        }
        let active = active_run(&mut connection, &row, &thread).await?;
        match (row.if_busy, active) {
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
    let insert = run_insert_statement(OPERATION, &row.tenant, &row.run);
    if connection.execute(insert).await? == 0 {
        return Ok(Ended::Undone(Attempt::Exists));
    }
    connection
        .execute(queue_insert_statement(&row, row.owner().as_deref()))
        .await?;
    let accepted = Attempt::Accepted {
        is_leased: row.lease.is_some(),
        interrupted,
    };
    Ok(if row.is_free() || interrupted.is_some() {
        Ended::Signed(accepted)
    } else {
        Ended::Kept(accepted)
    })
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
        let is_leased = wanted.is_some() && row.owner == wanted;
        Enqueued::Accepted {
            lease: is_leased.then(|| lease_of(run, row.fence.unsigned_abs())),
            interrupted: None,
        }
    }))
}

fn lease_of(run: &NewQueuedRun, fence: u64) -> Lease {
    Lease {
        tenant: run.tenant.clone(),
        run_id: run.summary.run_id,
        fence,
    }
}

fn thread_insert_statement<'v>(row: &'v NewQueueRow, thread: &'v ThreadName) -> Statement<'v> {
    let statement = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
        values ($1, $2, null, 0, $3, $3)
        on conflict (tenant, name) do nothing";
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(thread.as_str())
        .bind(StoredTime(row.accepted_at))
}

/// Tells whether the thread points to where the run was planned to begin.
async fn begins_at_thread(
    connection: &mut Connection<'_>,
    row: &NewQueueRow,
    thread: &ThreadName,
) -> Result<bool, sqlx::Error> {
    let statement = "select session_id from threads where tenant = $1 and name = $2";
    let select = Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(thread.as_str());
    let found: Option<(Option<Uuid>,)> = connection.fetch_optional(select).await?;
    Ok(found.is_some_and(|(session_id,)| session_id == row.run.base_session_id))
}

/// Finds the run that others on the thread wait for.
async fn active_run(
    connection: &mut Connection<'_>,
    row: &NewQueueRow,
    thread: &ThreadName,
) -> Result<Option<RunId>, sqlx::Error> {
    let statement = "select run_id from run_queue
        where tenant = $1 and thread = $2 and moves_thread
        order by is_held, run_id
        limit 1";
    let select = Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(thread.as_str());
    let active: Option<(Uuid,)> = connection.fetch_optional(select).await?;
    Ok(active.map(|(run_id,)| RunId::from_uuid(run_id)))
}

fn stop_statement(row: &NewQueueRow, run_id: RunId) -> Statement<'_> {
    let statement = "update run_queue set control = $3 where tenant = $1 and run_id = $2 and control is null";
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(run_id.as_uuid())
        .bind(RunControl::Stop.as_str())
}

/// The turn of a run of the tenant `$1` and the priority `$4`: after those of its tenant that wait, and no earlier than the first that
/// waits, so that whoever comes late goes on from where the others are.
macro_rules! next_turn {
    ($tenant:literal, $priority:literal) => {
        concat!(
            "(select max(place.turn) from (
                select max(turn) + 1 as turn from run_queue
                where tenant = ",
            $tenant,
            " and priority = ",
            $priority,
            " and leased_until is null
                union all
                select coalesce(min(turn), 1) from run_queue
                where priority = ",
            $priority,
            " and leased_until is null and (not is_held or control = 'cancel')
            ) place)"
        )
    };
}
pub(crate) use next_turn;

fn queue_insert_statement<'v>(row: &'v NewQueueRow, owner: Option<&'v str>) -> Statement<'v> {
    let statement = concat!(
        "insert into run_queue (
            tenant, run_id, thread, priority, is_held, moves_thread, enqueued_at, fence, attempts, leased_until, owner,
            schema_version, encoding, request, turn)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, ",
        next_turn!("$1", "$4"),
        ")"
    );
    Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(row.run.run_id)
        .bind_queue_row(row, owner)
}

impl<'v> Statement<'v> {
    /// Binds the values of a row of the queue from its thread to its request.
    pub(crate) fn bind_queue_row(self, row: &'v NewQueueRow, owner: Option<&'v str>) -> Self {
        self.bind(row.thread.as_ref().map(ThreadName::as_str))
            .bind(row.priority)
            .bind(row.is_held)
            .bind(row.moves_thread())
            .bind(StoredTime(row.accepted_at))
            .bind(row.fence())
            .bind(row.leased_until())
            .bind(owner)
            .bind_payload(Some(&row.request))
    }
}
