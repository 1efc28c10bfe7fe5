//! The outbox as a trait: webhook messages, written with the event that they report, and sent until
//! they are delivered.

use std::fmt;

use super::query::Page;
use super::queue::{IdempotencyKey, KnownRequest, LeaseTerms};
use super::traits::StoreFuture;
use crate::clock::Timestamp;
use crate::ids::{DeliveryId, RunId, WorkerId};
use crate::record::{DeliveryRecord, DeliveryStatus};
use crate::tenant::TenantId;

/// A delivery that a worker is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// Whose it is.
    pub tenant: TenantId,
    /// The delivery; its attempts count this one.
    pub record: DeliveryRecord,
    /// The message: JSON.
    pub body: String,
}

/// Which deliveries a worker takes.
#[derive(Debug, Clone, Copy)]
pub struct DueFilter<'a> {
    /// The most.
    pub limit: u32,
    /// None to these hosts.
    pub except_receivers: &'a [String],
    /// None of these tenants.
    pub except_tenants: &'a [TenantId],
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOutcome {
    /// Where the delivery stands now.
    pub status: DeliveryStatus,
    /// The status of the answer.
    pub response_status: Option<u16>,
    /// Why it failed, in words for the caller.
    pub error: Option<String>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When it is sent again; none once it is over.
    pub due_at: Option<Timestamp>,
}

/// Which deliveries a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only of this status.
    pub status: Option<DeliveryStatus>,
    /// Only of this run.
    pub run_id: Option<RunId>,
}

/// What became of a delivery that was to be sent again.
#[derive(Debug, Clone, PartialEq)]
pub enum Restarted {
    /// It is sent again.
    Now(DeliveryRecord),
    /// An earlier request had the key.
    Known(KnownRequest),
    /// There is no such delivery.
    Missing,
}

/// Keeps deliveries.
pub trait OutboxStore: Send + Sync + fmt::Debug {
    /// Takes deliveries that are due; others may take them from `terms.until` on, unless they are over by then.
    fn delivery_lease<'a>(&'a self, terms: &'a LeaseTerms, filter: DueFilter<'a>) -> StoreFuture<'a, Vec<DueDelivery>>;

    /// Notes what became of an attempt of this worker: the one for which the delivery was leased as the record says. Tells whether it still
    /// had the delivery.
    fn delivery_record<'a>(
        &'a self,
        tenant: &'a TenantId,
        leased: &'a DeliveryRecord,
        worker: WorkerId,
        outcome: &'a DeliveryOutcome,
    ) -> StoreFuture<'a, bool>;

    /// Reads a delivery.
    fn delivery_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        delivery_id: DeliveryId,
    ) -> StoreFuture<'a, Option<DeliveryRecord>>;

    /// Lists deliveries, newest first.
    fn delivery_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a DeliveryFilter,
        page: Page<DeliveryId>,
    ) -> StoreFuture<'a, Vec<DeliveryRecord>>;

    /// Has a delivery sent again from its first attempt on, whatever became of it, unless an earlier request had the key. The key is taken
    /// with it, both or nothing.
    fn delivery_restart<'a>(
        &'a self,
        tenant: &'a TenantId,
        delivery_id: DeliveryId,
        key: Option<&'a IdempotencyKey>,
        now: Timestamp,
    ) -> StoreFuture<'a, Restarted>;
}
