//! The outbox. Lists do not read messages.

use super::connection::{Connection, Ended};
use super::due::delivery_lease;
use super::engine::Engine;
use super::queue::{key_claim_statement, key_lookup};
use super::statement::Statement;
use super::text::sql;
use crate::clock::Timestamp;
use crate::ids::{DeliveryId, WorkerId};
use crate::record::{DeliveryRecord, DeliveryStatus};
use crate::store::error::{StoreError, StoreFuture};
use crate::store::outbox::{DeliveryFilter, DeliveryOutcome, DueDelivery, DueFilter, OutboxStore, Restarted};
use crate::store::query::Page;
use crate::store::queue::{IdempotencyKey, LeaseTerms};
use crate::store::rows::{DeliveryRow, StoredTime};
use crate::tenant::TenantId;

impl<E: Engine> OutboxStore for E {
    fn delivery_lease<'a>(&'a self, terms: &'a LeaseTerms, filter: DueFilter<'a>) -> StoreFuture<'a, Vec<DueDelivery>> {
        Box::pin(delivery_lease(self, terms, filter))
    }

    fn delivery_record<'a>(
        &'a self,
        tenant: &'a TenantId,
        leased: &'a DeliveryRecord,
        worker: WorkerId,
        outcome: &'a DeliveryOutcome,
    ) -> StoreFuture<'a, bool> {
        Box::pin(delivery_record(self, tenant, leased, worker, outcome))
    }

    fn delivery_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        delivery_id: DeliveryId,
    ) -> StoreFuture<'a, Option<DeliveryRecord>> {
        Box::pin(delivery_lookup(self, tenant, delivery_id))
    }

    fn delivery_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a DeliveryFilter,
        page: Page<DeliveryId>,
    ) -> StoreFuture<'a, Vec<DeliveryRecord>> {
        Box::pin(delivery_list(self, tenant, filter, page))
    }

    fn delivery_restart<'a>(
        &'a self,
        tenant: &'a TenantId,
        delivery_id: DeliveryId,
        key: Option<&'a IdempotencyKey>,
        now: Timestamp,
    ) -> StoreFuture<'a, Restarted> {
        Box::pin(delivery_restart(self, tenant, delivery_id, key, now))
    }
}

async fn delivery_record(
    engine: &impl Engine,
    tenant: &TenantId,
    leased: &DeliveryRecord,
    worker: WorkerId,
    outcome: &DeliveryOutcome,
) -> Result<bool, StoreError> {
    // The worker may have leased it again meanwhile, as another attempt.
    let statement = "update webhook_deliveries
        set status = $4, response_status = $5, error = $6, delivered_at = $7, due_at = $8, owner = null
        where tenant = $1 and delivery_id = $2 and owner = $3 and due_at = $9 and attempts = $10";
    let worker = worker.to_string();
    let recorded = Statement::new("record delivery", statement)
        .bind(tenant.as_str())
        .bind(leased.delivery_id.as_uuid())
        .bind(worker.as_str())
        .bind(outcome.status.as_str())
        .bind(outcome.response_status.map(i32::from))
        .bind(outcome.error.as_deref())
        .bind(outcome.delivered_at.map(StoredTime))
        .bind(outcome.due_at.map(StoredTime))
        .bind(leased.due_at.map(StoredTime))
        .bind(i64::from(leased.attempts))
        .execute(engine)
        .await?;
    Ok(recorded > 0)
}

async fn delivery_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    delivery_id: DeliveryId,
) -> Result<Option<DeliveryRecord>, StoreError> {
    let statement = sql!(
        "select ",
        DeliveryRow::COLUMNS,
        " from webhook_deliveries where tenant = $1 and delivery_id = $2"
    );
    let row: Option<DeliveryRow> = Statement::new("look up delivery", statement)
        .bind(tenant.as_str())
        .bind(delivery_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    row.map(DeliveryRecord::try_from).transpose()
}

async fn delivery_list(
    engine: &impl Engine,
    tenant: &TenantId,
    filter: &DeliveryFilter,
    page: Page<DeliveryId>,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    let statement = sql!(
        "select ",
        DeliveryRow::COLUMNS,
        " from webhook_deliveries where tenant = $1"
    );
    let mut select = Statement::new("list deliveries", statement).bind(tenant.as_str());
    // As literals, so that the planner knows which of the partial indexes fit.
    match filter.status {
        Some(DeliveryStatus::Pending) => select.push(" and status = 'pending'"),
        Some(DeliveryStatus::Delivered) => select.push(" and status = 'delivered'"),
        Some(DeliveryStatus::Dead) => select.push(" and status = 'dead'"),
        None => (),
    }
    if let Some(run_id) = filter.run_id {
        select.push_bind(" and run_id = ", run_id.as_uuid());
    }
    if let Some(before) = page.before {
        select.push_bind(" and delivery_id < ", before.as_uuid());
    }
    select.push_bind(" order by delivery_id desc limit ", i64::from(page.limit));
    let rows: Vec<DeliveryRow> = select.fetch_all(engine).await?;
    rows.into_iter().map(DeliveryRecord::try_from).collect()
}

async fn delivery_restart(
    engine: &impl Engine,
    tenant: &TenantId,
    delivery_id: DeliveryId,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<Restarted, StoreError> {
    loop {
        let (owner, claim) = (tenant.clone(), key.cloned());
        let attempt = engine.transact(RESTART, move |connection| {
            Box::pin(restart_in_txn(connection, owner, delivery_id, claim, now))
        });
        match (attempt.await?, key) {
            (RestartAttempt::Done(row), _) => return Ok(Restarted::Now((*row).try_into()?)),
            (RestartAttempt::KeyTaken, Some(key)) => {
                if let Some(known) = key_lookup(engine, tenant, &key.key).await? {
                    return Ok(Restarted::Known(known));
                }
                // It expired and was removed in between: the next attempt gets it.
            }
            (RestartAttempt::Missing | RestartAttempt::KeyTaken, _) => return Ok(Restarted::Missing),
        }
    }
}

const RESTART: &str = "restart delivery";

enum RestartAttempt {
    Done(Box<DeliveryRow>),
    KeyTaken,
    Missing,
}

async fn restart_in_txn(
    mut connection: Connection<'_>,
    tenant: TenantId,
    delivery_id: DeliveryId,
    key: Option<IdempotencyKey>,
    now: Timestamp,
) -> Result<Ended<RestartAttempt>, sqlx::Error> {
    if let Some(key) = &key {
        let claim = key_claim_statement(&tenant, key, delivery_id.as_uuid());
        if connection.execute(claim).await? == 0 {
            return Ok(Ended::RolledBack(RestartAttempt::KeyTaken));
        }
    }
    // Without an owner, the result of an attempt in flight is not recorded.
    let statement = sql!(
        "update webhook_deliveries
        set status = 'pending', due_at = $3, owner = null, attempts = 0, response_status = null, error = null,
            delivered_at = null
        where tenant = $1 and delivery_id = $2
        returning ",
        DeliveryRow::COLUMNS
    );
    let restart = Statement::new(RESTART, statement)
        .bind(tenant.as_str())
        .bind(delivery_id.as_uuid())
        .bind(StoredTime(now));
    Ok(match connection.fetch_optional(restart).await? {
        Some(row) => Ended::Committed(RestartAttempt::Done(Box::new(row))),
        None => Ended::RolledBack(RestartAttempt::Missing),
    })
}
