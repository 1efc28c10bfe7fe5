//! Accepting runs: the record, the slot in the queue and the idempotency key, all or nothing. Each
//! engine inserts the rows its own way; this file turns an attempt into the result for the caller.

use super::acceptance::Attempt;
use super::idempotency::key_lookup;
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{Enqueued, KnownRequest, Lease, NewQueuedRun};
use crate::store::rows::row;
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;

/// The fence of the lease that a run is accepted with.
const FIRST_FENCE: u32 = 1;

/// A run that can't be accepted.
#[derive(Debug, thiserror::Error)]
#[error("a run of this id has ended, or another has reserved its session")]
struct RunExists;

/// Accepts a run. Returns the result of the first attempt if that took effect.
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
                // It expired and was removed in between: the next attempt gets it.
            }
            Attempt::ThreadRaced => (),
            Attempt::TenantFull => return repeated(engine, run).await,
            Attempt::MissingBase(base) => return Ok(Enqueued::MissingBase(base)),
            Attempt::Exists => return earlier(engine, run).await?.ok_or_else(exists),
        }
    }
}

/// Returns the result of a request that finds the queue full. A repeated one gets the result of the
/// first.
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

row! {
    /// A run in the queue and its lease holder.
    #[derive(Debug)]
    struct OwnerRow {
        fence: i64,
        owner: Option<String>,
    }
}

/// Returns the result of the attempt that put this very run into the queue; `None` if it is not
/// there.
async fn earlier(engine: &impl Engine, run: &NewQueuedRun) -> Result<Option<Enqueued>, StoreError> {
    let statement = "select fence, owner from run_queue where tenant = $1 and run_id = $2";
    let row: Option<OwnerRow> = Statement::new(OPERATION, statement)
        .bind(run.tenant.as_str())
        .bind(run.summary.run_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    Ok(row.map(|row| {
        let wanted = run.lease.map(|terms| terms.worker.to_string());
        // A later lease belongs to another attempt.
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
