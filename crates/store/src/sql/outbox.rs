//! The outbox. Lists do not read the messages.

use async_trait::async_trait;

use super::audit::record;
use super::connection::{Connection, Ended};
use super::due::delivery_lease;
use super::engine::Engine;
use super::queue::{key_claim_statement, key_lookup};
use super::statement::Statement;
use super::text::sql;
use crate::audit::{Act, AuditAction, Requester};
use crate::error::StoreError;
use crate::outbox::{DeliveryFilter, DeliveryOutcome, DueDelivery, DueFilter, OutboxStore, Restarted};
use crate::query::Page;
use crate::queue::{IdempotencyKey, LeaseTerms};
use crate::rows::{DeliveryRow, values};
use agent::record::{DeliveryRecord, DeliveryStatus};
use values::ids::{DeliveryId, WorkerId};
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> OutboxStore for E {
    async fn delivery_lease(&self, terms: &LeaseTerms, filter: DueFilter<'_>) -> Result<Vec<DueDelivery>, StoreError> {
        delivery_lease(self, terms, filter).await
    }

    async fn delivery_record(
        &self,
        tenant: &TenantId,
        leased: &DeliveryRecord,
        worker: WorkerId,
        outcome: &DeliveryOutcome,
    ) -> Result<bool, StoreError> {
        // The worker may have leased the delivery again meanwhile, for another attempt.
        let statement = "update webhook_deliveries
            set status = $4, response_status = $5, error = $6, delivered_at = $7, due_at = $8, owner = null
            where tenant = $1 and delivery_id = $2 and owner = $3 and due_at = $9 and attempts = $10";
        let worker = worker.to_string();
        let values = values![
            tenant,
            leased.delivery_id,
            &worker,
            outcome.status.as_str(),
            outcome.response_status.map(i32::from),
            &outcome.error,
            outcome.delivered_at,
            outcome.due_at,
            leased.due_at,
            leased.attempts
        ];
        let update = Statement::with("record delivery", statement, values);
        Ok(update.execute(self).await? > 0)
    }

    async fn delivery_lookup(
        &self,
        tenant: &TenantId,
        delivery_id: DeliveryId,
    ) -> Result<Option<DeliveryRecord>, StoreError> {
        let statement = sql!(
            "select ",
            DeliveryRow::COLUMNS,
            " from webhook_deliveries where tenant = $1 and delivery_id = $2"
        );
        let select = Statement::with("look up delivery", statement, values![tenant, delivery_id]);
        select.find::<DeliveryRow, _>(self).await
    }

    async fn delivery_list(
        &self,
        tenant: &TenantId,
        filter: &DeliveryFilter,
        page: Page<DeliveryId>,
    ) -> Result<Vec<DeliveryRecord>, StoreError> {
        let statement = sql!(
            "select ",
            DeliveryRow::COLUMNS,
            " from webhook_deliveries where tenant = $1"
        );
        let mut select = Statement::with("list deliveries", statement, values![tenant]);
        // Literals, so that the planner knows which of the partial indexes it can use.
        match filter.status {
            Some(DeliveryStatus::Pending) => select.push(" and status = 'pending'"),
            Some(DeliveryStatus::Delivered) => select.push(" and status = 'delivered'"),
            Some(DeliveryStatus::Dead) => select.push(" and status = 'dead'"),
            None => (),
        }
        select.push_some(" and run_id = ", filter.run_id);
        select.push_some(" and delivery_id < ", page.before);
        select.push_bind(" order by delivery_id desc limit ", page.limit);
        select.list::<DeliveryRow, _>(self).await
    }

    async fn delivery_restart(
        &self,
        tenant: &TenantId,
        delivery_id: DeliveryId,
        key: Option<&IdempotencyKey>,
        by: &Requester,
    ) -> Result<Restarted, StoreError> {
        // What changes nothing does not wait for other acts of the tenant.
        if self.delivery_lookup(tenant, delivery_id).await?.is_none() {
            return Ok(Restarted::Missing);
        }
        loop {
            let (owner, claim, by) = (tenant.clone(), key.cloned(), by.clone());
            let attempt = self.transact(RESTART, move |connection| {
                Box::pin(restart_in_txn(connection, owner, delivery_id, claim, by))
            });
            match (attempt.await?, key) {
                (RestartAttempt::Done(row), _) => return Ok(Restarted::Now((*row).try_into()?)),
                (RestartAttempt::KeyTaken, Some(key)) => {
                    if let Some(known) = key_lookup(self, tenant, &key.key).await? {
                        return Ok(Restarted::Known(known));
                    }
                    // The key expired and was removed in between. The next attempt claims it.
                }
                (RestartAttempt::Missing | RestartAttempt::KeyTaken, _) => return Ok(Restarted::Missing),
            }
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
    by: Requester,
) -> Result<Ended<RestartAttempt>, sqlx::Error> {
    let now = by.at;
    let act = Act::of(&tenant, &by, AuditAction::WebhookRedelivered, delivery_id.to_string());
    record(&mut connection, &act).await?;
    if let Some(key) = &key {
        let claim = key_claim_statement(&tenant, key, delivery_id.as_uuid());
        if connection.execute(claim).await? == 0 {
            return Ok(Ended::RolledBack(RestartAttempt::KeyTaken));
        }
    }
    // Clears the owner, so that the result of an attempt in flight is not recorded.
    let statement = sql!(
        "update webhook_deliveries
        set status = 'pending', due_at = $3, owner = null, attempts = 0, response_status = null, error = null,
            delivered_at = null
        where tenant = $1 and delivery_id = $2
        returning ",
        DeliveryRow::COLUMNS
    );
    let restart = Statement::with(RESTART, statement, values![&tenant, delivery_id, now]);
    Ok(match connection.fetch_optional(restart).await? {
        Some(row) => Ended::Committed(RestartAttempt::Done(Box::new(row))),
        None => Ended::RolledBack(RestartAttempt::Missing),
    })
}
