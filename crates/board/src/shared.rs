//! The part of a board that processes share: what the board needs of its server.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::control::AddressedMessage;
use super::error::BoardError;
use super::feed::TenantChange;
use super::live_run::LiveRun;
use agent::record::RunEvent;
use values::ids::{RunId, SessionId};
use values::limits::{RateStanding, RequestRate};
use values::tenant::TenantId;

/// The part of a board that processes share.
#[async_trait]
pub(super) trait SharedBoard: Send + Sync + fmt::Debug {
    /// Adds a run that begins, here and, as soon as possible, on the server.
    async fn run_open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId>;

    /// Queues the current state of a run for the server.
    fn run_update(&self, tenant: &TenantId, run_id: RunId);

    /// Queues the removal of a run from the server.
    fn run_close(&self, tenant: &TenantId, run: &LiveRun);

    /// Queues the new events of a run for the server.
    fn event_append(&self, tenant: &TenantId, run_id: RunId);

    /// Finds a live run of another process.
    async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>>;

    /// Finds the live run of another process that has reserved the session id.
    async fn run_lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId>;

    /// Lists the live runs that the server shows, without their steps and output.
    async fn run_list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>>;

    /// Reads events that other processes share.
    async fn event_read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<RunEvent>>, BoardError>;

    /// Returns the number of the last shared event.
    async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, BoardError>;

    /// Queues a change of a tenant for the readers of other processes.
    fn change_publish(&self, tenant: &TenantId, change: TenantChange);

    /// Publishes a control message. Returns the number of other processes that received it; `None`
    /// if it can't be published now.
    async fn control_publish(&self, message: AddressedMessage) -> Option<u64>;

    /// Returns whether messages of other processes reach this one now.
    fn is_subscribed(&self) -> bool;

    /// Counts a request of a tenant.
    async fn rate_take(&self, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding>;

    /// Removes all keys of a tenant from the server, and returns their number.
    async fn tenant_remove(&self, tenant: &TenantId) -> Result<u64, BoardError>;

    /// Sends pending changes and ends.
    async fn close(&self);
}
