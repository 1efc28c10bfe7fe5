//! The resources that the handlers and the layers share.

use std::sync::Arc;

use super::frames::Frames;
use super::in_flight::InFlight;
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::mcp_settings::McpSettings;
use super::openai_settings::OpenAiSettings;
use super::readiness::Readiness;
use crate::run::RunContext;
use values::limits::TenantShares;

/// The resources that handlers and layers share.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) runs: Arc<RunContext>,
    /// `None` if `/mcp` is not served.
    pub(super) mcp: Option<Arc<McpSettings>>,
    pub(super) openai: Arc<OpenAiSettings>,
    pub(super) limits: HttpLimits,
    pub(super) keys: KeyCache,
    pub(super) readiness: Readiness,
    pub(super) readers: Arc<TenantShares>,
    /// The budget of response bytes.
    pub(super) in_flight: InFlight,
    /// Events that are being sent.
    pub(super) frames: Frames,
}
