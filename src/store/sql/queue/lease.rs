//! Leases: leasing, renewing and releasing runs.
//!
//! Renewal skips locked rows, so that one slow transaction does not stop the renewal of other
//! leases. A skipped lease is renewed soon after. A released run takes the earliest waiting turn of
//! its level, so it is leased again soon. A deferred run keeps its turn.

use std::collections::HashSet;

use super::unreadable::set_aside;
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::RunStatus;
use crate::store::error::StoreError;
use crate::store::queue::{Lease, LeaseChoice, LeaseTerms, LeasedRun, RenewedLease};
use crate::store::rows::{LeaseKey, LeasedRunRow, RenewedLeaseRow, StoredTime, stored_count};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;

/// The columns of `rows::LeasedRunRow` beside those of its run, which goes by `r`; its row of the queue goes by `q`.
macro_rules! leased_columns {
    () => {
        "q.tenant as lease_tenant, q.run_id as lease_run_id, q.fence, cast(q.attempts as bigint) as lease_attempts, \
         cast(q.level as bigint) as level, q.turn, q.control, q.moves_thread, q.schema_version as request_version, q.encoding as request_encoding, q.request"
    };
}
pub(crate) use leased_columns;

/// Tells the database's time.
pub(super) async fn lease_time<E: Engine>(engine: &E) -> Result<Timestamp, StoreError> {
    let row: Option<(StoredTime,)> = Statement::new("tell time", E::TIME).fetch_optional(engine).await?;
    row.map(|(time,)| time.0).ok_or_else(|| StoreError::Failed {
        operation: "tell time",
        source: "no row".into(),
    })
}

/// Leases runs. One that can't be read must not keep the others from being worked on.
pub(super) async fn run_lease(
    engine: &impl Engine,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Vec<LeasedRun>, StoreError> {
    loop {
        let mut rows = engine.run_lease(terms, choice.clone()).await?;
        rows.sort_by_key(LeasedRunRow::order);
        let found = rows.len();
        let mut leased = Vec::with_capacity(found);
        for row in rows {
            match row.read() {
                Ok(run) => leased.push(run),
                Err(unreadable) => set_aside(engine, terms, *unreadable).await,
            }
        }
        if found == 0 || !leased.is_empty() {
            return Ok(leased);
        }
        // What comes after those that can't be read must not wait for another look at the queue. They are leased, so this has an end.
    }
}

/// The most leases that are renewed with one statement: three values each, and every engine has its limit of values.
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

/// Renews those whose rows nobody else is changing: whoever holds one of them must not keep the others from being renewed.
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

/// Finds the leases that were not renewed and are in force all the same.
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

/// Gives a run back.
pub(super) async fn lease_release(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let key = LeaseKey::from(lease);
    engine
        .transact(RELEASE, move |connection| Box::pin(release_in_txn(connection, key)))
        .await
}

const RELEASE: &str = "release lease";

async fn release_in_txn(mut connection: Connection<'_>, key: LeaseKey) -> Result<Ended<bool>, sqlx::Error> {
    // The fence grows here, too, so that whoever had the lease writes nothing any more.
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
        return Ok(Ended::Undone(false));
    };
    connection.execute(queued_statement(RELEASE, &key, attempts)).await?;
    Ok(Ended::KeptForWorkers(true))
}

/// Gives a run back that nobody shall have until then.
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
        return Ok(Ended::Undone(false));
    };
    connection.execute(queued_statement(DEFER, &key, attempts)).await?;
    Ok(Ended::Kept(true))
}

/// Notes that nobody works on a run.
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

/// Tells whether a lease is in force.
pub(super) async fn is_leased(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let row: Option<(i32,)> = Statement::new("check lease", statement)
        .bind_lease(lease)
        .fetch_optional(engine)
        .await?;
    Ok(row.is_some())
}

impl<'v> Statement<'v> {
    /// Binds a lease: the tenant, the run and the fence.
    pub(crate) fn bind_lease(self, lease: &'v Lease) -> Self {
        self.bind(lease.tenant.as_str())
            .bind(lease.run_id.as_uuid())
            .bind(stored_count(lease.fence))
    }

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

    /// Binds a lease as its row has it.
    pub(crate) fn bind_key(self, key: &'v LeaseKey) -> Self {
        self.bind(key.tenant.as_str()).bind(key.run_id).bind(key.fence)
    }

    /// Binds a run.
    pub(crate) fn bind_run_key(self, tenant: &'v crate::tenant::TenantId, run_id: RunId) -> Self {
        self.bind(tenant.as_str()).bind(run_id.as_uuid())
    }
}
