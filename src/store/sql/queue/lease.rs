//! Leases: renew and release.

use std::collections::HashSet;

use crate::clock::Timestamp;
use crate::record::RunStatus;
use crate::store::error::StoreError;
use crate::store::queue::{Lease, RenewedLease};
use crate::store::rows::{LeaseKey, RenewedLeaseRow, StoredTime, stored_count};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;

/// The most leases that one statement renews: three values each, and every engine has its limit of
/// values.
const RENEWED_AT_ONCE: usize = 1_000;

const RENEW: &str = "renew leases";

/// Renews leases. A failure may leave some renewed.
pub(super) async fn lease_renew(
    engine: &impl Engine,
    leases: &[Lease],
    until: Timestamp,
) -> Result<Vec<RenewedLease>, StoreError> {
    let mut held = Vec::with_capacity(leases.len());
    for leases in leases.chunks(RENEWED_AT_ONCE) {
        let renewed = renew_some(engine, leases, until).await?;
        let busy = if renewed.len() < leases.len() {
            busy_among(engine, leases, &renewed).await?
        } else {
            Vec::new()
        };
        held.extend(renewed.into_iter().chain(busy));
    }
    Ok(held)
}

/// The columns of `rows::RenewedLeaseRow` but for whether the lease lasts longer now.
macro_rules! renewed_columns {
    () => {
        "tenant, run_id, fence, control, exists (
            select 1 from run_messages m
            where m.tenant = run_queue.tenant and m.run_id = run_queue.run_id and m.status = 'received'
        ) as has_messages"
    };
}

/// Renews leases. Skips locked rows, so that one slow transaction does not stop renewals.
async fn renew_some<E: Engine>(
    engine: &E,
    leases: &[Lease],
    until: Timestamp,
) -> Result<Vec<RenewedLease>, StoreError> {
    let free = "with free as materialized (
            select tenant, run_id, fence from run_queue where (tenant, run_id, fence) in ";
    let mut renew = Statement::new(RENEW, free).push_leases(leases.iter());
    renew.push(E::SKIP_LOCKED);
    renew.push_bind(") update run_queue set leased_until = ", StoredTime(until));
    renew.push(concat!(
        " where (tenant, run_id, fence) in (select tenant, run_id, fence from free) returning ",
        renewed_columns!(),
        ", true as is_prolonged"
    ));
    let rows: Vec<RenewedLeaseRow> = renew.execute_returning(engine).await?;
    rows.into_iter().map(RenewedLease::try_from).collect()
}

/// Finds the leases that were not renewed and are still in force.
async fn busy_among(
    engine: &impl Engine,
    leases: &[Lease],
    renewed: &[RenewedLease],
) -> Result<Vec<RenewedLease>, StoreError> {
    let renewed: HashSet<&Lease> = renewed.iter().map(|renewed| &renewed.lease).collect();
    let left: Vec<&Lease> = leases.iter().filter(|lease| !renewed.contains(lease)).collect();
    let select = concat!(
        "select ",
        renewed_columns!(),
        ", false as is_prolonged from run_queue where (tenant, run_id, fence) in "
    );
    let select = Statement::new(RENEW, select).push_leases(left.into_iter());
    let rows: Vec<RenewedLeaseRow> = select.fetch_all(engine).await?;
    rows.into_iter().map(RenewedLease::try_from).collect()
}

/// Releases a run.
pub(super) async fn lease_release(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let key = LeaseKey::from(lease);
    engine
        .transact(RELEASE, move |connection| Box::pin(release_in_txn(connection, key)))
        .await
}

const RELEASE: &str = "release lease";

async fn release_in_txn(mut connection: Connection<'_>, key: LeaseKey) -> Result<Ended<bool>, sqlx::Error> {
    // The fence token grows here, too, so that the former lease holder writes nothing any more.
    let release = "update run_queue set
            leased_until = null, owner = null, attempts = attempts - 1, fence = fence + 1,
            turn = coalesce((
                select w.turn from run_queue w
                where w.level = run_queue.level and w.leased_until is null
                    and (not w.is_held or w.control = 'cancel') and w.turn < run_queue.turn
                order by w.turn
                limit 1
            ), turn)
        where tenant = $1 and run_id = $2 and fence = $3
        returning attempts";
    let release = Statement::new(RELEASE, release).bind_key(&key);
    let Some((attempts,)): Option<(i32,)> = connection.fetch_optional(release).await? else {
        return Ok(Ended::RolledBack(false));
    };
    connection.execute(queued_statement(RELEASE, &key, attempts)).await?;
    Ok(Ended::CommittedForWorkers(true))
}

/// Releases a run, not to be leased before the given time.
pub(super) async fn lease_defer(engine: &impl Engine, key: LeaseKey, until: Timestamp) -> Result<bool, StoreError> {
    engine
        .transact(DEFER, move |connection| Box::pin(defer_in_txn(connection, key, until)))
        .await
}

const DEFER: &str = "defer run";

async fn defer_in_txn(
    mut connection: Connection<'_>,
    key: LeaseKey,
    until: Timestamp,
) -> Result<Ended<bool>, sqlx::Error> {
    let defer = "update run_queue set leased_until = $4, owner = null, attempts = attempts - 1, fence = fence + 1
        where tenant = $1 and run_id = $2 and fence = $3
        returning attempts";
    let defer = Statement::new(DEFER, defer).bind_key(&key).bind(StoredTime(until));
    let Some((attempts,)): Option<(i32,)> = connection.fetch_optional(defer).await? else {
        return Ok(Ended::RolledBack(false));
    };
    connection.execute(queued_statement(DEFER, &key, attempts)).await?;
    Ok(Ended::Committed(true))
}

/// Marks a run as queued.
fn queued_statement<'v>(operation: &'static str, key: &'v LeaseKey, attempts: i32) -> Statement<'v> {
    let statement = "update runs set status = $3, attempts = $4 where tenant = $1 and run_id = $2";
    Statement::new(operation, statement)
        .bind(key.tenant.as_str())
        .bind(key.run_id)
        .bind(RunStatus::Queued.as_str())
        .bind(attempts)
}

/// Counts the runs that wait.
pub(super) async fn queue_length(engine: &impl Engine, limit: u32) -> Result<u64, StoreError> {
    let statement = "select count(*) from (select 1 from run_queue where leased_until is null limit $1) waiting";
    let row: Option<(i64,)> = Statement::new("count queue", statement)
        .bind(i64::from(limit))
        .fetch_optional(engine)
        .await?;
    Ok(row.map_or(0, |(count,)| count.unsigned_abs()))
}

impl<'v> Statement<'v> {
    /// Appends a list of leases, each as `bind_lease` has it.
    fn push_leases(mut self, leases: impl ExactSizeIterator<Item = &'v Lease> + Clone) -> Self {
        // Few lengths, so that few texts are prepared.
        let padding = leases.len().next_power_of_two() - leases.len();
        let last = leases.clone().last();
        let padded = leases.chain(last.into_iter().cycle().take(padding));
        for (index, lease) in padded.enumerate() {
            self.push_bind(if index == 0 { "(values (" } else { ", (" }, lease.tenant.as_str());
            self.push_bind(", ", lease.run_id.as_uuid());
            self.push_bind(", ", stored_count(lease.fence));
            self.push(")");
        }
        self.push(")");
        self
    }
}
