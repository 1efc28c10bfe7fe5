//! Leases: take, renew and release. Also the control of runs, which workers read when they renew
//! leases.

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::release::lease_release;
use super::unreadable::set_aside;
use crate::error::StoreError;
use crate::queue::{Lease, LeaseChoice, LeaseLimits, LeaseStore, LeaseTerms, LeasedRun, QueueFigures, RenewedLease};
use crate::rows::{LeaseKey, LeasedRunRow, RenewedLeaseRow, StoredTime, stored_count, values};
use crate::sql::connection::Ended;
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use agent::record::RunControl;
use values::clock::Timestamp;
use values::ids::RunId;
use values::tenant::TenantId;

/// The most leases that one statement renews. Each takes three values, and engines limit the number
/// of values.
const RENEWED_AT_ONCE: usize = 1_000;

/// The name of the operation that leases runs.
pub(crate) const LEASE: &str = "lease runs";
const RENEW: &str = "renew leases";

/// The most rows that are read for each figure of the queue.
const FIGURES_LIMIT: u32 = 10_000;

/// Each figure reads the beginning of an index. The longest wait is that of the runs which come
/// next.
const FIGURES: &str = "select
        (select count(*) from (select 1 from run_queue where leased_until is not null limit $1) leased),
        (select count(*) from (select 1 from run_queue where leased_until is null limit $1) unleased),
        count(*), min(enqueued_at)
    from (
        select enqueued_at from run_queue
        where leased_until is null and (not is_held or control = 'cancel')
        order by level desc, turn, run_id
        limit $1
    ) waiting";

#[async_trait]
impl<E: Engine> LeaseStore for E {
    async fn lease_time(&self) -> Result<Timestamp, StoreError> {
        const OPERATION: &str = "read time";
        let row: Option<(StoredTime,)> = Statement::new(OPERATION, E::TIME).fetch_optional(self).await?;
        row.map(|(time,)| time.0)
            .ok_or_else(|| StoreError::failed(OPERATION)("no row"))
    }

    async fn run_lease(&self, terms: &LeaseTerms, limits: LeaseLimits) -> Result<Vec<LeasedRun>, StoreError> {
        lease_readable(self, *terms, LeaseChoice::Next(limits)).await
    }

    async fn run_lease_now(
        &self,
        terms: &LeaseTerms,
        tenant: &TenantId,
        run_id: RunId,
    ) -> Result<Option<LeasedRun>, StoreError> {
        let choice = LeaseChoice::This(tenant.clone(), run_id);
        Ok(lease_readable(self, *terms, choice).await?.pop())
    }

    /// After an error, some of the leases may be renewed.
    async fn lease_renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<RenewedLease>, StoreError> {
        let mut held = Vec::with_capacity(leases.len());
        for leases in leases.chunks(RENEWED_AT_ONCE) {
            let renewed = renew_some(self, leases, until).await?;
            let busy = if renewed.len() < leases.len() {
                busy_among(self, leases, &renewed).await?
            } else {
                Vec::new()
            };
            held.extend(renewed.into_iter().chain(busy));
        }
        Ok(held)
    }

    async fn lease_release(&self, lease: &Lease) -> Result<bool, StoreError> {
        lease_release(self, LeaseKey::from(lease), None).await
    }

    async fn lease_defer(&self, lease: &Lease, until: Timestamp) -> Result<bool, StoreError> {
        lease_release(self, LeaseKey::from(lease), Some(until)).await
    }

    async fn queue_length(&self, limit: u32) -> Result<u64, StoreError> {
        let statement = "select count(*) from (select 1 from run_queue where leased_until is null limit $1) waiting";
        let select = Statement::with("count queue", statement, values![limit]);
        let row: Option<(i64,)> = select.fetch_optional(self).await?;
        Ok(row.map_or(0, |(count,)| count.unsigned_abs()))
    }

    async fn queue_figures(&self) -> Result<QueueFigures, StoreError> {
        let select = Statement::with("read queue figures", FIGURES, values![FIGURES_LIMIT]);
        let row: Option<(i64, i64, i64, Option<StoredTime>)> = select.fetch_optional(self).await?;
        let (leased, unleased, waiting, oldest) = row.unwrap_or_default();
        Ok(QueueFigures {
            waiting: waiting.unsigned_abs(),
            held: (unleased - waiting).max(0).unsigned_abs(),
            leased: leased.unsigned_abs(),
            oldest_waiting: oldest.map(|time| time.0),
        })
    }

    fn queue_wake_ups(&self) -> BoxStream<'static, ()> {
        self.wake_ups()
    }

    async fn run_control(&self, tenant: &TenantId, run_id: RunId, control: RunControl) -> Result<bool, StoreError> {
        const OPERATION: &str = "control run";
        let tenant = tenant.clone();
        let controlling = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                let statement = "update run_queue set control = case when control = 'cancel' then control else $3 end
                    where tenant = $1 and run_id = $2";
                let update = Statement::with(OPERATION, statement, values![&tenant, run_id, control.as_str()]);
                let is_queued = connection.execute(update).await? > 0;
                Ok(if is_queued {
                    Ended::CommittedForWorkers(true)
                } else {
                    Ended::RolledBack(false)
                })
            })
        });
        controlling.await
    }
}

/// Leases runs. Sets unreadable runs aside, so that the others run.
async fn lease_readable(
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
        // The runs behind unreadable ones must not wait for the next poll. The loop ends, since the
        // unreadable runs are leased now.
    }
}

/// The columns of `rows::RenewedLeaseRow`, except whether the lease was prolonged.
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

/// Finds the leases in force that were not renewed, since their rows are locked.
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
    select.list::<RenewedLeaseRow, _>(engine).await
}

impl<'v> Statement<'v> {
    /// Appends a list of leases. Each has the values that `bind_key` binds.
    fn push_leases(mut self, leases: impl ExactSizeIterator<Item = &'v Lease> + Clone) -> Self {
        // Pads the list to a power of two, so that connections prepare few texts.
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
