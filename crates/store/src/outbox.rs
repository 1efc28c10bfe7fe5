//! The outbox as a trait. The transaction that ends a run stores its webhooks; workers send them
//! afterwards until they are delivered.

use std::fmt;

use async_trait::async_trait;

use super::audit::Requester;
use super::error::StoreError;
use super::query::Page;
use super::queue::{IdempotencyKey, KnownRequest, LeaseTerms};
use agent::record::{DeliveryRecord, DeliveryStatus};
use values::clock::Timestamp;
use values::ids::{DeliveryId, RunId, WorkerId};
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// A delivery that a worker is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// The tenant of the delivery.
    pub tenant: TenantId,
    /// The delivery; its attempts count this one.
    pub record: DeliveryRecord,
    /// The message: JSON.
    pub body: String,
    /// The span of the run that it is about, if its receiver gets it.
    pub trace: Option<TraceContext>,
}

/// The deliveries that a worker leases.
#[derive(Debug, Clone, Copy)]
pub struct DueFilter<'a> {
    /// The most deliveries.
    pub limit: u32,
    /// Excludes deliveries to these hosts.
    pub except_receivers: &'a [String],
    /// Excludes deliveries of these tenants.
    pub except_tenants: &'a [TenantId],
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOutcome {
    /// The status of the delivery.
    pub status: DeliveryStatus,
    /// The status code of the reply.
    pub response_status: Option<u16>,
    /// Why it failed, for the caller to read.
    pub error: Option<String>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When it is sent again; `None` if it is not.
    pub due_at: Option<Timestamp>,
}

/// The deliveries that a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only of this status.
    pub status: Option<DeliveryStatus>,
    /// Only of this run.
    pub run_id: Option<RunId>,
}

/// The result of restarting a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Restarted {
    /// The delivery is sent again.
    Now(DeliveryRecord),
    /// An earlier request used the key.
    Known(KnownRequest),
    /// There is no such delivery.
    Missing,
}

/// Stores deliveries.
#[async_trait]
pub trait OutboxStore: Send + Sync + fmt::Debug {
    /// Leases deliveries that are due, until `terms.until`.
    async fn delivery_lease(&self, terms: &LeaseTerms, filter: DueFilter<'_>) -> Result<Vec<DueDelivery>, StoreError>;

    /// Records the result of an attempt under the lease that the record shows. Returns whether the
    /// lease was in force.
    async fn delivery_record(
        &self,
        tenant: &TenantId,
        leased: &DeliveryRecord,
        worker: WorkerId,
        outcome: &DeliveryOutcome,
    ) -> Result<bool, StoreError>;

    /// Reads a delivery.
    async fn delivery_lookup(
        &self,
        tenant: &TenantId,
        delivery_id: DeliveryId,
    ) -> Result<Option<DeliveryRecord>, StoreError>;

    /// Lists deliveries, newest first.
    async fn delivery_list(
        &self,
        tenant: &TenantId,
        filter: &DeliveryFilter,
        page: Page<DeliveryId>,
    ) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// Makes a delivery due again and resets its attempts, unless an earlier request had the key.
    /// Claims the key in the same transaction.
    async fn delivery_restart(
        &self,
        tenant: &TenantId,
        delivery_id: DeliveryId,
        key: Option<&IdempotencyKey>,
        by: &Requester,
    ) -> Result<Restarted, StoreError>;
}
