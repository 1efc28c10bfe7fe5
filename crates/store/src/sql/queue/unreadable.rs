//! Sets aside leased runs that can't be read. A run that a later version stored waits for that
//! version. Any other run fails after some attempts. Only its keys are used to end it, since no
//! other column can be trusted.

use std::error::Error as StdError;

use super::ending::{next_release, queue_leave};
use super::release::lease_release;
use crate::error::StoreError;
use crate::queue::{LeaseTerms, UNREADABLE_ATTEMPTS};
use crate::rows::{LeaseKey, UnreadableRun, values};
use crate::sql::connection::{Connection, Ended};
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use agent::record::{RunError, RunPhase, RunStatus};
use agent::state::StopReason;
use values::clock::Timestamp;

const OPERATION: &str = "give up run";

/// Sets a leased run aside. If that fails, the lease expires and a worker tries the run again.
pub(super) async fn set_aside(engine: &impl Engine, terms: LeaseTerms, run: UnreadableRun) {
    let UnreadableRun { key, attempts, error } = run;
    let run_id = key.run_id;
    let is_newer = error.is_of_later_version();
    let is_last = attempts >= i64::from(UNREADABLE_ATTEMPTS);
    tracing::error!(%run_id, attempts, is_newer, error = &error as &dyn StdError, "a queued run can't be read");
    let done = match (is_newer, is_last) {
        (true, _) => lease_release(engine, key, Some(terms.until)).await,
        (false, true) => give_up(engine, key, terms.now).await,
        (false, false) => return,
    };
    if let Err(error) = done {
        tracing::warn!(%run_id, error = &error as &dyn StdError, "a run that can't be read is left until its lease expires");
    }
}

async fn give_up<E: Engine>(engine: &E, key: LeaseKey, now: Timestamp) -> Result<bool, StoreError> {
    let error = RunError {
        code: "request_unusable".to_owned(),
        message: "what is stored of the run can't be read".to_owned(),
        phase: RunPhase::Load,
        conflicting_run_id: None,
    };
    let error = serde_json::to_string(&error).map_err(StoreError::failed(OPERATION))?;
    engine
        .transact(OPERATION, move |connection| {
            Box::pin(give_up_in_txn::<E>(connection, key, error, now))
        })
        .await
}

/// Ends the run as `ending.rs` does, with the columns that can be trusted.
async fn give_up_in_txn<E: Engine>(
    mut connection: Connection<'_>,
    key: LeaseKey,
    error: String,
    now: Timestamp,
) -> Result<Ended<bool>, sqlx::Error> {
    let statement = "select thread from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let mut select = Statement::new(OPERATION, statement).bind_key(&key);
    select.push(E::LOCK);
    let Some((thread,)): Option<(Option<String>,)> = connection.fetch_optional(select).await? else {
        return Ok(Ended::RolledBack(false));
    };
    queue_leave(&mut connection, &key, false).await?;
    next_release::<E>(&mut connection, &key.tenant, thread.as_deref()).await?;
    let statement = "update runs set
            status = $3, stop_reason = $4, error = $5, event_count = 1 + (
                select coalesce(max(e.last_sequence), 0) from run_events e where e.tenant = $1 and e.run_id = $2),
            completed_at = case
                when coalesce(started_at, created_at) > $6 then coalesce(started_at, created_at)
                else $6
            end
        where tenant = $1 and run_id = $2";
    let (status, reason) = (RunStatus::Failed.as_str(), StopReason::ErrorForbade.as_str());
    let values = values![&key.tenant, key.run_id, status, reason, &error, now];
    let update = Statement::with(OPERATION, statement, values);
    connection.execute(update).await?;
    Ok(Ended::CommittedForWorkers(true))
}
