//! The resources that the handlers and the layers share.

use std::sync::Arc;

use tokio::sync::Mutex;
use tower_http::cors::CorsLayer;

use super::codes::ProblemCode;
use super::console_sessions::ConsoleSessions;
use super::console_settings::ConsoleSettings;
use super::drain::Drain;
use super::frames::Frames;
use super::in_flight::InFlight;
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::mcp_settings::McpSettings;
use super::openai_settings::OpenAiSettings;
use super::problem::Problem;
use super::queue_reading::QueueReading;
use super::readiness::Readiness;
use super::revocations::Revocations;
use crate::run::RunContext;
use crate::tokens::Tokens;
use store::StoreError;
use values::clock::Timestamp;
use values::limits::TenantShares;

/// The resources that handlers and layers share.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) runs: Arc<RunContext>,
    /// When this process began to serve.
    pub(super) started_at: Timestamp,
    /// `None` if `/mcp` is not served.
    pub(super) mcp: Option<Arc<McpSettings>>,
    pub(super) openai: Arc<OpenAiSettings>,
    /// `None` if the console is not served.
    pub(super) console: Option<ConsoleSettings>,
    pub(super) limits: HttpLimits,
    /// Lets web pages of the configured origins call; `None` if there are none.
    pub(super) cross_origin: Option<CorsLayer>,
    pub(super) keys: KeyCache,
    /// `None` if the configuration has no identity provider.
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) revocations: Revocations,
    pub(super) console_sessions: ConsoleSessions,
    pub(super) readiness: Readiness,
    pub(super) drain: Drain,
    pub(super) readers: Arc<TenantShares>,
    /// The budget of response bytes.
    pub(super) in_flight: InFlight,
    pub(super) queue: QueueReading,
    /// Held while the metrics are read.
    pub(super) metrics_turn: Mutex<()>,
    /// Events that are being sent.
    pub(super) frames: Frames,
}

impl Api {
    /// Returns whether requests need credentials: with an identity provider always, and otherwise
    /// once a first key was created.
    pub(super) async fn is_key_needed(&self) -> Result<bool, StoreError> {
        Ok(self.tokens.is_some() || self.keys.is_key_needed().await?)
    }

    /// Returns the settings of the console, or the problem that it is not served.
    pub(super) fn console(&self) -> Result<&ConsoleSettings, Problem> {
        self.console.as_ref().ok_or_else(|| {
            let words = "the console is not served: `console.enabled` is false, or the service listens beyond \
                         loopback and the key is not set";
            Problem::new(ProblemCode::RouteNotFound, words)
        })
    }
}
