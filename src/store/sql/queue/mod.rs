//! The queue: leases, progress and control of runs that have not ended.

mod acceptance;
mod enqueue;
mod idempotency;

mod fence;
mod lease;
mod take;
mod unreadable;

mod ending;

mod control;
mod messages;

mod events;
mod journal;
mod usage;

use std::sync::Arc;

use futures_util::stream::BoxStream;

pub(crate) use self::acceptance::{
    Attempt, PlacedRun, ThreadState, accepted, next_turn, place_on_thread, stop_statement, waiting_statement,
};
pub(crate) use self::ending::{end_insert, lease_end};
pub(crate) use self::idempotency::{key_claim_statement, key_lookup};
pub(crate) use self::take::leased_columns;
use super::engine::Engine;
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::{RunControl, RunEvent, SteeringMessage};
use crate::store::error::StoreFuture;
use crate::store::queue::{
    Enqueued, IdempotencyKey, JournalRecord, KnownRequest, Lease, LeaseChoice, LeaseLimits, LeaseTerms, LeasedRun,
    MessagePut, NewQueuedRun, QueueStore, RenewedLease, SteeringRecord,
};
use crate::store::rows::LeaseKey;
use crate::store::traits::{Recorded, RunEnd, RunWriter};
use crate::tenant::TenantId;
use crate::usage::Usage;

impl<E: Engine> RunWriter for E {
    fn run_record<'a>(&'a self, tenant: &'a TenantId, end: &'a RunEnd) -> StoreFuture<'a, Recorded> {
        Box::pin(ending::run_record(self, tenant, end))
    }
}

impl<E: Engine> QueueStore for E {
    fn lease_time(&self) -> StoreFuture<'_, Timestamp> {
        Box::pin(take::lease_time(self))
    }

    fn run_enqueue<'a>(&'a self, run: &'a NewQueuedRun) -> StoreFuture<'a, Enqueued> {
        Box::pin(enqueue::run_enqueue(self, run))
    }

    fn run_lease<'a>(&'a self, terms: &'a LeaseTerms, limits: LeaseLimits) -> StoreFuture<'a, Vec<LeasedRun>> {
        Box::pin(take::run_lease(self, *terms, LeaseChoice::Next(limits)))
    }

    fn run_lease_now<'a>(
        &'a self,
        terms: &'a LeaseTerms,
        tenant: &'a TenantId,
        run_id: RunId,
    ) -> StoreFuture<'a, Option<LeasedRun>> {
        let choice = LeaseChoice::This(tenant.clone(), run_id);
        Box::pin(async move { Ok(take::run_lease(self, *terms, choice).await?.pop()) })
    }

    fn lease_renew<'a>(&'a self, leases: &'a [Lease], until: Timestamp) -> StoreFuture<'a, Vec<RenewedLease>> {
        Box::pin(lease::lease_renew(self, leases, until))
    }

    fn lease_release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, bool> {
        Box::pin(lease::lease_release(self, lease))
    }

    fn lease_defer<'a>(&'a self, lease: &'a Lease, until: Timestamp) -> StoreFuture<'a, bool> {
        Box::pin(lease::lease_defer(self, LeaseKey::from(lease), until))
    }

    fn queue_length(&self, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(lease::queue_length(self, limit))
    }

    fn queue_wake_ups(&self) -> BoxStream<'static, ()> {
        self.wake_ups()
    }

    fn run_control<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, control: RunControl) -> StoreFuture<'a, bool> {
        Box::pin(control::run_control(self, tenant, run_id, control))
    }

    fn message_insert<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        message: &'a SteeringMessage,
    ) -> StoreFuture<'a, MessagePut> {
        Box::pin(messages::message_insert(self, tenant, run_id, message))
    }

    fn run_message_list<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Vec<SteeringRecord>> {
        Box::pin(messages::run_message_list(self, tenant, run_id))
    }

    fn waiting_message_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
    ) -> StoreFuture<'a, Vec<SteeringMessage>> {
        Box::pin(messages::waiting_message_list(self, tenant, run_id))
    }

    fn message_apply<'a>(&'a self, lease: &'a Lease, keys: &'a [String]) -> StoreFuture<'a, bool> {
        Box::pin(messages::message_apply(self, lease, keys))
    }

    fn journal_append<'a>(&'a self, lease: &'a Lease, entries: &'a [JournalRecord]) -> StoreFuture<'a, bool> {
        Box::pin(journal::journal_append(self, lease, entries))
    }

    fn journal_read<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Vec<JournalRecord>> {
        Box::pin(journal::journal_read(self, tenant, run_id))
    }

    fn event_append<'a>(&'a self, lease: &'a Lease, events: &'a [Arc<RunEvent>]) -> StoreFuture<'a, bool> {
        Box::pin(events::event_append(self, lease, events))
    }

    fn usage_update<'a>(&'a self, lease: &'a Lease, usage: &'a Usage) -> StoreFuture<'a, bool> {
        Box::pin(usage::usage_update(self, lease, usage))
    }

    fn event_read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Arc<RunEvent>>> {
        Box::pin(events::event_read(self, tenant, run_id, after, limit))
    }

    fn event_last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, u64> {
        Box::pin(events::event_last(self, tenant, run_id))
    }

    fn idempotency_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<KnownRequest>> {
        Box::pin(idempotency::idempotency_lookup(self, tenant, key, now))
    }

    fn idempotency_claim<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a IdempotencyKey,
        resource_id: uuid::Uuid,
    ) -> StoreFuture<'a, Option<KnownRequest>> {
        Box::pin(idempotency::idempotency_claim(self, tenant, key, resource_id))
    }
}
