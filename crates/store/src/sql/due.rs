//! Leases deliveries that are due. The filter may exclude most of them, so the statement reads only
//! a bounded number of excluded ones.

use super::engine::Engine;
use super::statement::Statement;
use super::text::sql;
use crate::codec::{DELIVERY_VERSION, NEWEST_ENCODING};
use crate::error::StoreError;
use crate::outbox::{DueDelivery, DueFilter};
use crate::queue::LeaseTerms;
use crate::rows::{DeliveryRow, DueDeliveryRow, values};

/// Leases the oldest deliveries that are due and match the filter.
pub(super) async fn delivery_lease<E: Engine>(
    engine: &E,
    terms: &LeaseTerms,
    filter: DueFilter<'_>,
) -> Result<Vec<DueDelivery>, StoreError> {
    let worker = terms.worker.to_string();
    let lease = lease_statement::<E>(terms, &worker, filter);
    let rows: Vec<DueDeliveryRow> = lease.execute_returning(engine).await?;
    let mut due: Vec<_> = rows.into_iter().filter_map(readable).collect();
    due.sort_by_key(|delivery| delivery.record.delivery_id);
    Ok(due)
}

/// Finds the oldest deliveries that are due: 100 more than wanted, since other workers lock some.
const OLDEST: &str = "with recursive oldest as materialized (
        select tenant, delivery_id, due_at, receiver from webhook_deliveries
        where status = 'pending' and due_at <= $1
        order by due_at
        limit $4 + 100
    ), eligible as materialized (
        select tenant, delivery_id, due_at from oldest where true";

/// Walks over all pairs of a tenant and a receiver with pending deliveries. Does so only if too few
/// of the oldest deliveries match the filter. A pair with a null receiver leads to the next tenant.
const PAIRS: &str = "), pair (tenant, receiver) as (
        select '', '' where (select count(*) from oldest) = $4 + 100 and (select count(*) from eligible) < $4
        union all
        select
            case when pair.receiver is null then (
                select tenant from webhook_deliveries
                where status = 'pending' and tenant > pair.tenant
                order by tenant, receiver
                limit 1
            ) else pair.tenant end,
            case when pair.receiver is null then '' else (
                select receiver from webhook_deliveries
                where status = 'pending' and tenant = pair.tenant and receiver > pair.receiver";

/// Adds the oldest deliveries of each pair.
const CANDIDATES: &str = "
                order by receiver
                limit 1
            ) end
        from pair where pair.tenant is not null
    ), candidate as (
        select * from eligible
        union
        select d.tenant, d.delivery_id, d.due_at from pair cross join ";

/// Takes the oldest candidates that no other worker has locked. The limit of `few` removes no row.
/// Because of it, the planner expects few rows and uses the primary key.
const TAKEN: &str = "
        order by due_at
        limit $4 + 100
    ), due (due_tenant, due_id) as (
        select d.tenant, d.delivery_id
        from (select * from candidate limit $4 + 100) few
        join webhook_deliveries d on d.tenant = few.tenant and d.delivery_id = few.delivery_id
        where d.status = 'pending' and d.due_at <= $1
        order by d.due_at
        limit $4";

/// Moves the due time to the end of the lease, so that the delivery is due again if this worker is
/// killed. Does not count the attempt if a later version stored the delivery, which only that
/// version can send.
const LEASE: &str = sql!(
    " )
    update webhook_deliveries set due_at = $2, owner = $3,
        attempts = attempts + case when schema_version <= $5 and encoding <= $6 then 1 else 0 end
    from due where tenant = due_tenant and delivery_id = due_id
    returning tenant, traceparent, schema_version, encoding, payload, ",
    DeliveryRow::COLUMNS
);

fn lease_statement<'v, E: Engine>(terms: &LeaseTerms, worker: &'v str, filter: DueFilter<'v>) -> Statement<'v> {
    let (now, until, limit) = (terms.now, terms.until, filter.limit);
    let values = values![now, until, worker, limit, DELIVERY_VERSION, NEWEST_ENCODING];
    let mut lease = Statement::with("lease deliveries", OLDEST, values);
    for receiver in filter.except_receivers {
        lease.push_bind(" and receiver <> ", receiver.as_str());
    }
    for tenant in filter.except_tenants {
        lease.push_bind(" and tenant <> ", tenant.as_str());
    }
    lease.push(PAIRS);
    for tenant in filter.except_tenants {
        lease.push_bind(" and pair.tenant <> ", tenant.as_str());
    }
    lease.push(CANDIDATES);
    lease.push(E::OLDEST_OF_PAIR);
    for receiver in filter.except_receivers {
        lease.push_bind(" and pair.receiver <> ", receiver.as_str());
    }
    for tenant in filter.except_tenants {
        lease.push_bind(" and pair.tenant <> ", tenant.as_str());
    }
    lease.push(TAKEN);
    lease.push(E::SKIP_LOCKED);
    lease.push(LEASE);
    lease
}

/// Skips an unreadable row, so that the rest of the batch is sent. A later version of the service
/// may be able to read the row.
fn readable(row: DueDeliveryRow) -> Option<DueDelivery> {
    let read = DueDelivery::try_from(row);
    read.inspect_err(|error| {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::error!(error = error.to_string(), cause, "a webhook delivery can't be read");
    })
    .ok()
}
