//! Configuration: one file per section. The only module that reads the process environment.
//!
//! [`load`] merges four layers; later ones win: the embedded `config/default.toml`, a file, the
//! environment (`AGENT_RUNTIME__SECTION__KEY`), and overrides from the command line. Each value
//! remembers its [`Origin`], so errors and `check-config` can name it.
//!
//! A section is a plain struct: its fields are the known keys, and its attributes are the accepted
//! values. To add a key, add a field and a commented line in `config/default.toml`; a test compares
//! the two. Values that may contain secrets are redacted in every `Debug` and `Display`. The
//! configuration never contains an API key; it names where the key is found.
//!
//! Opens no connection and starts nothing.

mod explanation;
mod loader;
mod sources;

mod environment;
mod overrides;
mod schema;
mod settings;
mod toml_layer;

mod agents;
mod aws;
mod board;
mod capabilities;
mod context_windows;
mod http;
mod idempotency;
mod limits;
mod log;
mod mcp;
mod models;
mod objects;
mod prices;
mod providers;
mod queue;
mod retention;
mod runs;
mod sandbox;
mod sandbox_network;
mod store;
mod tools;
mod webhooks;
mod workspace;

mod error;
mod secrets;
mod values;

#[cfg(test)]
mod tests;

pub use agents::AgentsConfig;
pub use aws::AwsConfig;
pub use board::BoardConfig;
pub use capabilities::CapabilityConfig;
pub use environment::UnreadVariable;
pub use error::ConfigError;
pub use http::{HttpConfig, McpServerConfig};
pub use idempotency::IdempotencyConfig;
pub use limits::{LimitsConfig, TenantLimitsConfig};
pub use loader::{Loaded, load};
pub use log::{LogConfig, LogFormat};
pub use mcp::McpConfig;
pub use models::ModelsConfig;
pub use objects::ObjectsConfig;
pub use overrides::parse_override;
pub use prices::PriceConfig;
pub use providers::ProviderConfig;
pub use queue::{PriorityScope, QueueConfig, Role};
pub use retention::RetentionConfig;
pub use runs::{BudgetConfig, RunsConfig};
pub use sandbox::{Backend, SandboxConfig};
pub use secrets::SecretUrl;
pub use settings::Origin;
pub use sources::Sources;
pub use store::StoreConfig;
pub use tools::{HttpFetchConfig, ToolSecretConfig, ToolsConfig};
pub use webhooks::{ALL_TENANTS, SecretSourceConfig, WebhooksConfig};
pub use workspace::WorkspaceConfig;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::Deserialize;

use ::models::Capabilities;
use ::values::limits::Limits;
use ::values::model_ref::ContextWindows;
use ::values::usage::PriceTable;

/// Every setting of the service, checked and typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub http: HttpConfig,
    pub store: StoreConfig,
    pub board: BoardConfig,
    pub runs: RunsConfig,
    pub queue: QueueConfig,
    pub limits: LimitsConfig,
    pub idempotency: IdempotencyConfig,
    pub models: ModelsConfig,
    /// Model providers by name, the first half of `PROVIDER/MODEL`.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Prices by `PROVIDER/MODEL`. A model without an entry has an unknown cost.
    pub prices: BTreeMap<String, PriceConfig>,
    pub workspace: WorkspaceConfig,
    pub sandbox: SandboxConfig,
    pub tools: ToolsConfig,
    pub mcp: McpConfig,
    pub webhooks: WebhooksConfig,
    pub retention: RetentionConfig,
    /// The context windows of models in tokens, input and output together, by `PROVIDER/MODEL`.
    pub context_windows: BTreeMap<String, NonZeroU64>,
    /// What models can take, by `PROVIDER/MODEL`, on top of what is known of them.
    pub capabilities: BTreeMap<String, CapabilityConfig>,
    pub agents: AgentsConfig,
    pub log: LogConfig,
}

impl Config {
    /// Builds the table of prices for runs.
    pub fn price_table(&self) -> PriceTable {
        prices::table(&self.prices, &self.providers)
    }

    /// Builds the limits of tenants.
    pub fn limits(&self) -> Limits {
        limits::table(&self.limits)
    }

    /// Returns what the models of a provider can take, by model.
    pub fn capabilities_of(&self, provider: &str) -> BTreeMap<String, Capabilities> {
        capabilities::of_provider(&self.capabilities, provider)
    }

    /// Builds the table of context windows for summaries.
    pub fn context_window_table(&self) -> ContextWindows {
        context_windows::table(&self.context_windows)
    }
}
