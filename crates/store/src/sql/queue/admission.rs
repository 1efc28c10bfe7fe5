//! The admission of runs, for both engines: the decision about the thread and the tenant's limit,
//! and common statements.

use uuid::Uuid;

use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::queue::{Acceptance, IfBusy};
use crate::rows::{row, values};
use crate::sql::attempt::Attempt;
use crate::sql::connection::{Connection, Ended};
use crate::sql::statement::Statement;
use agent::record::{RunControl, RunStatus};
use values::ids::RunId;
use values::tenant::TenantId;

row! {
    /// The state of a thread when a run is accepted.
    #[derive(Debug)]
    struct ThreadState {
        /// The session that the thread points to.
        session_id: Option<Uuid>,
        /// The active run of the thread.
        active: Option<Uuid>,
        /// Whether an earlier request has the key.
        is_key_taken: bool,
    }
}

/// A run that may be accepted, unless its rows conflict with others.
pub(crate) struct AdmittedRun {
    pub(crate) row: NewAcceptance,
    /// The active run that is asked to stop for it.
    interrupted: Option<RunId>,
}

/// Checks the thread of a run and the number of the tenant's waiting runs. Stops the active run if
/// the new one interrupts it. If the tenant's waiting runs are limited, the statement `lock` makes
/// its requests wait for each other.
pub(crate) async fn admit_in_txn(
    connection: &mut Connection<'_>,
    row: NewAcceptance,
    thread_statement: fn(&NewAcceptance) -> Statement<'_>,
    lock: Option<&'static str>,
) -> Result<Result<AdmittedRun, Attempt>, sqlx::Error> {
    let mut run = AdmittedRun { row, interrupted: None };
    if run.row.thread().is_some() {
        let found: Option<ThreadState> = connection.fetch_optional(thread_statement(&run.row)).await?;
        run = match admit_to_thread(run.row, &found.ok_or(sqlx::Error::RowNotFound)?) {
            Ok(admitted) => admitted,
            Err(conflict) => return Ok(Err(conflict)),
        };
        if let Some(active) = run.interrupted {
            connection.execute(stop_statement(&run.row, active)).await?;
        }
    }
    if let Some(limit) = run.row.max_waiting
        && !run.row.is_leased()
    {
        if let Some(lock) = lock {
            let lock = Statement::with(OPERATION, lock, values![&run.row.tenant]);
            connection.execute(lock).await?;
        }
        // A separate statement, so that it also counts the runs of requests that held the lock
        // before.
        let waiting: Option<(i64,)> = connection.fetch_optional(waiting_statement(&run.row, limit)).await?;
        if waiting.is_some_and(|(waiting,)| waiting >= i64::from(limit)) {
            return Ok(Err(Attempt::Refused(Acceptance::TenantFull)));
        }
    }
    Ok(Ok(run))
}

/// Marks the calls that a new run answers, once its rows are inserted: a removal locks a session
/// before its run as well. Returns the conflict if another run was faster.
pub(crate) async fn answer_in_txn(
    connection: &mut Connection<'_>,
    row: &NewAcceptance,
) -> Result<Option<Attempt>, sqlx::Error> {
    let Some(answer) = row.answer else { return Ok(None) };
    let by = RunId::from_uuid(row.queue.run_id);
    let rival = answer_on_conn(connection, &row.tenant, answer.run_id, by).await?;
    let rival = rival.filter(|_| !answer.is_fork);
    Ok(rival.map(|by| Attempt::Refused(Acceptance::Answered(by))))
}

/// Marks the open calls of a run as answered by another one. Returns the run that was faster. Of
/// several that answer at once, the row of the waiting run decides.
pub(crate) async fn answer_on_conn(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    waiting: RunId,
    by: RunId,
) -> Result<Option<RunId>, sqlx::Error> {
    let (from, to) = (RunStatus::Waiting.as_str(), RunStatus::Answered.as_str());
    let statement = "update runs set status = $4, answer_run_id = $5
        where tenant = $1 and run_id = $2 and status = $3";
    let update = Statement::with(OPERATION, statement, values![tenant, waiting, from, to, by]);
    if connection.execute(update).await? > 0 {
        return Ok(None);
    }
    let statement = "select answer_run_id from runs where tenant = $1 and run_id = $2 and answer_run_id <> $3";
    let select = Statement::with(OPERATION, statement, values![tenant, waiting, by]);
    let row: Option<(Uuid,)> = connection.fetch_optional(select).await?;
    Ok(row.map(|(rival,)| RunId::from_uuid(rival)))
}

/// Decides whether a run is accepted on its thread, and whether it waits there.
fn admit_to_thread(mut row: NewAcceptance, found: &ThreadState) -> Result<AdmittedRun, Attempt> {
    // A repeated request returns its own run, which may be the active one.
    if found.is_key_taken {
        return Err(Attempt::KeyTaken);
    }
    // The run was planned from another session. A worker must plan it again before it begins.
    if row.queue.follows_thread && found.session_id != row.run.row.base_session_id {
        row = row.unleased();
    }
    let mut interrupted = None;
    match (row.if_busy, found.active.map(RunId::from_uuid)) {
        (_, None) | (IfBusy::Fork, _) => (),
        (IfBusy::Reject, Some(active)) => return Err(Attempt::Refused(Acceptance::ThreadBusy(active))),
        (IfBusy::Queue, Some(_)) => row = row.held(),
        (IfBusy::Interrupt, Some(active)) => {
            interrupted = Some(active);
            row = row.held();
        }
    }
    Ok(AdmittedRun { row, interrupted })
}

/// Ends the transaction of an accepted run: commits it unless there was a conflict.
pub(crate) fn ended(run: &AdmittedRun, conflict: Option<Attempt>) -> Ended<Attempt> {
    if let Some(conflict) = conflict {
        return Ended::RolledBack(conflict);
    }
    let accepted = Attempt::Accepted {
        is_leased: run.row.is_leased(),
        interrupted: run.interrupted,
    };
    if run.row.is_free() || run.interrupted.is_some() {
        Ended::CommittedForWorkers(accepted)
    } else {
        Ended::Committed(accepted)
    }
}

/// Asks the active run of a thread to stop, unless it already has a control.
fn stop_statement(row: &NewAcceptance, run_id: RunId) -> Statement<'_> {
    let statement = "update run_queue set control = $3 where tenant = $1 and run_id = $2 and control is null";
    Statement::with(
        OPERATION,
        statement,
        values![&row.tenant, run_id, RunControl::Stop.as_str()],
    )
}

/// Counts the waiting runs of the tenant, up to a limit.
fn waiting_statement(row: &NewAcceptance, limit: u32) -> Statement<'_> {
    let statement = "select count(*) from (
            select 1 from run_queue where tenant = $1 and leased_until is null limit $2
        ) waiting";
    Statement::with(OPERATION, statement, values![&row.tenant, limit])
}

/// The turn of a new run: after the waiting runs of its tenant, and not before the first waiting
/// run of any tenant. So a tenant without waiting runs does not get earlier turns than the others.
///
/// Uses `order by` and `limit` instead of `min` and `max`, for which the planner may read a whole
/// index when it assumes a short queue.
macro_rules! next_turn {
    ($tenant:literal, $level:literal) => {
        concat!(
            "(select max(slot.turn) from (
                select * from (
                    select turn + 1 as turn from run_queue
                    where tenant = ",
            $tenant,
            " and level = ",
            $level,
            " and leased_until is null
                    order by run_queue.turn desc
                    limit 1
                ) last
                union all
                select coalesce((
                    select turn from run_queue
                    where level = ",
            $level,
            " and leased_until is null and (not is_held or control = 'cancel')
                    order by turn
                    limit 1
                ), 1)
            ) slot)"
        )
    };
}
pub(crate) use next_turn;
