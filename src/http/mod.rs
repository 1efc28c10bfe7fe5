//! The HTTP interface: the only module that knows axum, status codes, JSON on the wire and
//! server-sent events.
//!
//! Decides nothing about runs. Start with `router.rs`, which shows every route. Handlers extract,
//! call and respond. `refusal.rs` turns errors into problems.

mod router;
mod server;

mod agents;
mod deliveries;
mod docs;
mod guides;
mod health;
mod runs;
mod sessions;
mod tenant_limits;
mod threads;

mod auth;
mod guards;
mod host;
mod key_cache;
mod observe;
mod pretty;
mod readiness;

mod codes;
mod connection;
mod described;
mod described_schemas;
mod exchange;
mod headers;
mod idempotency;
mod in_flight;
mod input;
mod json_body;
mod json_errors;
mod limits;
mod metadata_filter;
mod paging;
mod parameters;
mod problem;
mod refusal;
mod unread;

use std::sync::Arc;

pub use self::agents::AgentView;
pub use self::codes::ProblemCode;
use self::in_flight::InFlight;
use self::key_cache::KeyCache;
pub use self::limits::HttpLimits;
pub use self::problem::{FieldProblem, Problem, with_causes};
use self::readiness::Readiness;
pub use self::router::{Interface, interface, openapi, probe_interface};
pub use self::server::serve;
pub use self::sessions::{SessionDiff, SessionSummaryView, SessionView};
pub use self::threads::ThreadView;
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::limits::{Limits, TenantShares};
use crate::run::{AgentDirectory, Runs};
use crate::store::{Sessions, Store};

/// What the handlers call.
#[derive(Debug, Clone)]
pub struct HttpState {
    /// Starts and shows runs.
    pub runs: Runs,
    /// Keeps the agents.
    pub agents: Arc<AgentDirectory>,
    /// Reads bundles, through their cache.
    pub sessions: Arc<Sessions>,
    /// Reads all else.
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
struct Api {
    service: HttpState,
    limits: HttpLimits,
    keys: KeyCache,
    readiness: Readiness,
    /// The readers of each tenant.
    readers: Arc<TenantShares>,
    /// The bytes of responses.
    in_flight: InFlight,
    /// Large events that are being sent.
    frames: runs::Frames,
}
