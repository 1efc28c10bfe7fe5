//! Accepting runs: the record, the slot in the queue and the idempotency key, all or nothing. Each
//! engine has its own statements to insert the rows. This file converts the outcome of an attempt
//! to the result for the caller. A repeated request with an idempotency key gets the result of the
//! first one.

use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::time::sleep;
use uuid::Uuid;

use super::admission::answer_on_conn;
use crate::error::{StoreError, Unavailability};
use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::queue::{Acceptance, AcceptanceStore, IdempotencyKey, KnownRequest, Lease, NewQueuedRun};
use crate::rows::{RowName, row, stored_count, values};
use crate::sql::attempt::Attempt;
use crate::sql::connection::Ended;
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use values::clock::Timestamp;
use values::ids::RunId;
use values::tenant::TenantId;

/// How often to retry a run that lost a race on its thread.
const RACES: usize = 10;
/// The first and the longest pause between these attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];

/// The operation's name in errors.
const CLAIM: &str = "claim idempotency key";

#[async_trait]
impl<E: Engine> AcceptanceStore for E {
    async fn run_accept(&self, run: &NewQueuedRun) -> Result<Acceptance, StoreError> {
        let mut pauses = None;
        loop {
            match Engine::run_accept(self, NewAcceptance::make(run).await?).await? {
                Attempt::Accepted { is_leased, interrupted } => {
                    let lease = is_leased.then(|| lease_of(run));
                    return Ok(Acceptance::Accepted { lease, interrupted });
                }
                Attempt::KeyTaken => {
                    if let Some(known) = known_request(self, run).await? {
                        let is_own = known.resource_id == run.summary.run_id.as_uuid();
                        let first = earlier(self, run).await?.filter(|_| is_own);
                        return Ok(first.unwrap_or(Acceptance::Known(known)));
                    }
                    // The key expired and was removed in between. The next attempt claims it.
                }
                Attempt::ThreadRaced => match pauses.get_or_insert_with(race_pauses).next() {
                    Some(pause) => sleep(pause).await,
                    None => return Err(raced()),
                },
                Attempt::Refused(refused) => return repeated(self, run, refused).await,
                Attempt::Exists => {
                    let first = earlier(self, run).await?;
                    return first.ok_or_else(|| {
                        StoreError::failed(OPERATION)("a run of this id has ended, or another has reserved its session")
                    });
                }
            }
        }
    }

    async fn run_answer(&self, tenant: &TenantId, waiting: RunId, by: RunId) -> Result<Option<RunId>, StoreError> {
        let tenant = tenant.clone();
        let answering = self.transact("answer run", move |mut connection| {
            Box::pin(async move {
                let rival = answer_on_conn(&mut connection, &tenant, waiting, by).await?;
                Ok(Ended::Committed(rival))
            })
        });
        answering.await
    }

    async fn idempotency_lookup(
        &self,
        tenant: &TenantId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownRequest>, StoreError> {
        let statement =
            "select resource_id, digest from idempotency_keys where tenant = $1 and key = $2 and expires_at > $3";
        let select = Statement::with("look up idempotency key", statement, values![tenant, key, now]);
        select.find::<KeyRow, _>(self).await
    }

    async fn idempotency_claim(
        &self,
        tenant: &TenantId,
        key: &IdempotencyKey,
        resource_id: Uuid,
    ) -> Result<Option<KnownRequest>, StoreError> {
        loop {
            let claimed = key_claim_statement(tenant, key, resource_id).execute(self).await?;
            if claimed > 0 {
                return Ok(None);
            }
            if let Some(known) = key_lookup(self, tenant, &key.key).await? {
                let is_own = known.resource_id == resource_id && known.digest == key.digest;
                return Ok((!is_own).then_some(known));
            }
            // The key expired and was removed in between. The next attempt claims it.
        }
    }
}

/// Returns the pauses between attempts that lose a race.
fn race_pauses() -> impl Iterator<Item = Duration> + Send {
    let backoff = ExponentialBuilder::default()
        .with_min_delay(PAUSES[0])
        .with_max_delay(PAUSES[1])
        .with_jitter()
        .with_max_times(RACES);
    backoff.build()
}

/// Returns the error of a run that lost every race. A later attempt may succeed.
fn raced() -> StoreError {
    StoreError::Unavailable {
        operation: OPERATION,
        reason: Unavailability::Busy,
        source: "other runs became active on the thread at the same moment, again and again".into(),
    }
}

/// Returns the result of a request that is refused. A repeated request gets the result of the first
/// one.
async fn repeated(engine: &impl Engine, run: &NewQueuedRun, refused: Acceptance) -> Result<Acceptance, StoreError> {
    if let Some(first) = earlier(engine, run).await? {
        return Ok(first);
    }
    let known = known_request(engine, run).await?;
    Ok(known.map_or(refused, Acceptance::Known))
}

async fn known_request(engine: &impl Engine, run: &NewQueuedRun) -> Result<Option<KnownRequest>, StoreError> {
    match &run.idempotency {
        Some(key) => engine.idempotency_lookup(&run.tenant, &key.key, key.claimed_at).await,
        None => Ok(None),
    }
}

/// Returns the result of an earlier attempt that accepted this same run; `None` if the run is not
/// in the queue.
async fn earlier(engine: &impl Engine, run: &NewQueuedRun) -> Result<Option<Acceptance>, StoreError> {
    let statement = "select fence, owner from run_queue where tenant = $1 and run_id = $2";
    let select = Statement::with(OPERATION, statement, values![&run.tenant, run.summary.run_id]);
    let row: Option<(i64, Option<String>)> = select.fetch_optional(engine).await?;
    Ok(row.map(|(fence, owner)| {
        let wanted = run.lease.map(|terms| terms.worker.to_string());
        // Any later lease belongs to another attempt at the run.
        let is_leased = wanted.is_some() && owner == wanted && fence == stored_count(Lease::FIRST_FENCE);
        Acceptance::Accepted {
            lease: is_leased.then(|| lease_of(run)),
            interrupted: None,
        }
    }))
}

/// Returns the lease that a run gets at acceptance.
fn lease_of(run: &NewQueuedRun) -> Lease {
    Lease {
        tenant: run.tenant.clone(),
        run_id: run.summary.run_id,
        fence: Lease::FIRST_FENCE,
    }
}

/// Claims a key if it is free or has expired. Otherwise changes no row.
pub(crate) fn key_claim_statement<'v>(
    tenant: &'v TenantId,
    key: &'v IdempotencyKey,
    resource_id: Uuid,
) -> Statement<'v> {
    let statement = "insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        values ($1, $2, $3, $4, $5)
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= $6";
    let IdempotencyKey {
        key,
        digest,
        claimed_at,
        expires_at,
    } = key;
    let values = values![tenant, key, resource_id, digest, *expires_at, *claimed_at];
    Statement::with(CLAIM, statement, values)
}

/// Finds the request of a key.
pub(crate) async fn key_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<KnownRequest>, StoreError> {
    let statement = "select resource_id, digest from idempotency_keys where tenant = $1 and key = $2";
    let select = Statement::with(CLAIM, statement, values![tenant, key]);
    select.find::<KeyRow, _>(engine).await
}

row! {
    #[derive(Debug)]
    struct KeyRow {
        resource_id: Uuid,
        digest: Vec<u8>,
    }
}

impl TryFrom<KeyRow> for KnownRequest {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        let name = RowName::new("idempotency_keys", &row.resource_id);
        Ok(Self {
            resource_id: row.resource_id,
            digest: name.hash("digest", &row.digest)?,
        })
    }
}
