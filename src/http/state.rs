//! The resources that the handlers and the layers share.

use std::sync::Arc;

use super::in_flight::InFlight;
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::mcp::McpSettings;
use super::readiness::Readiness;
use super::runs::Frames;
use crate::run::RunContext;
use crate::run::agents::AgentDirectory;
use store::Store;
use values::clock::Clock;
use values::ids::IdSource;
use values::limits::{Limits, TenantShares};

/// The parts of the service that the handlers call.
#[derive(Debug, Clone)]
pub struct HttpState {
    /// Starts and shows runs.
    pub runs: Arc<RunContext>,
    /// Manages the agents.
    pub agents: Arc<AgentDirectory>,
    /// The store of sessions and runs.
    pub store: Arc<dyn Store>,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// The settings of `/mcp`; `None` if it is not served.
    pub mcp: Option<Arc<McpSettings>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Names requests and imported messages.
    pub ids: Arc<dyn IdSource>,
}

/// The resources that handlers and layers share.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) service: HttpState,
    pub(super) limits: HttpLimits,
    pub(super) keys: KeyCache,
    pub(super) readiness: Readiness,
    /// The readers of each tenant.
    pub(super) readers: Arc<TenantShares>,
    /// The budget of response bytes.
    pub(super) in_flight: InFlight,
    /// Events that are being sent.
    pub(super) frames: Frames,
}
