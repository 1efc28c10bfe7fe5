//! What the handlers and the layers share.

use std::sync::Arc;

use super::in_flight::InFlight;
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::readiness::Readiness;
use super::runs::Frames;
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::limits::{Limits, TenantShares};
use crate::run::{AgentDirectory, Runs};
use crate::store::Store;

/// What the handlers call.
#[derive(Debug, Clone)]
pub struct HttpState {
    /// Starts and shows runs.
    pub runs: Runs,
    /// Keeps the agents.
    pub agents: Arc<AgentDirectory>,
    /// Reads all that was stored.
    pub store: Arc<dyn Store>,
    /// What tenants may do at most.
    pub limits: Arc<Limits>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Names requests and imported messages.
    pub ids: Arc<dyn IdSource>,
}

/// What handlers and layers share.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) service: HttpState,
    pub(super) limits: HttpLimits,
    pub(super) keys: KeyCache,
    pub(super) readiness: Readiness,
    /// The readers of each tenant.
    pub(super) readers: Arc<TenantShares>,
    /// The bytes of responses.
    pub(super) in_flight: InFlight,
    /// Large events that are being sent.
    pub(super) frames: Frames,
}
