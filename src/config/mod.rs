//! Configuration: the layers, the origin of each value, and the messages about mistakes. The only
//! module that reads the process environment.
//!
//! [`load`] merges four layers; later ones win: the embedded `config/default.toml`, a file, the
//! environment (`AGENT_RUNTIME__SECTION__KEY`), and overrides from the command line. Each value
//! remembers its [`Origin`], so errors and `check-config` can name it.
//!
//! The settings belong to the modules that use them: their structs know the keys and the accepted
//! values. Settings that concern several modules are here. To add a key, add a field to such a
//! struct and a commented line in `config/default.toml`; a test checks that some module reads each
//! key. Values that may contain secrets are redacted in every `Debug` and `Display`. The
//! configuration never contains an API key; it names where the key is found.
//!
//! Opens no connection and starts nothing.

mod explanation;
mod loader;
mod sections;
mod sources;

mod environment;
mod layers;
mod origin;
mod overrides;
mod schema;

mod board;
mod limits;
mod log;
mod model_names;
mod prices;
mod providers;
mod runs;
mod sandbox;
mod store;
mod tls;
mod tokens;
mod tools;
mod traces;

mod error;
mod kind_hint;
mod secrets;

#[cfg(test)]
mod tests;

pub use board::BoardConfig;
pub use environment::UnreadVariable;
pub use error::ConfigError;
pub use loader::{Loaded, load};
pub use log::{LogConfig, LogFormat};
pub use origin::Origin;
pub use overrides::parse_override;
pub use sandbox::{Backend, NetworkConfig, NetworkSecretConfig, SandboxConfig};
pub use secrets::SecretUrl;
pub use sources::{CallerVariables, Sources};
pub use store::StoreConfig;
pub use tools::{DirectoryConfig, HttpFetchConfig, WebhookSecretConfig};

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;

use self::sections::Sections;
use crate::http::{ConsoleSettings, DrainSettings, HttpLimits, McpAccess, OpenAiAccess, TlsSettings};
use crate::metrics::MetricsSettings;
use crate::outbox::OutboxSettings;
use crate::retention::SweepSettings;
use crate::run::settings::{IdempotencySettings, QueueSettings, RunSettings, SubagentSettings};
use crate::spans::TraceSettings;
use crate::tokens::TokenSettings;
use ::board::BoardSettings;
use ::store::StoreSettings;
use ::store::objects::ObjectSettings;
use ::store::retention::RetentionRules;
use ::tools::webhooks::SenderSettings;
use ::tools::{CallLimits, CommandSettings};
use agent::answers::AnswerExpiry;
use models::{ClientSettings, ProviderSettings};
use values::limits::Limits;
use values::model_ref::ContextWindows;
use values::usage::PriceTable;
use workspace::WorkspaceLimits;

/// Every setting of the service, checked and typed. The comments name the sections.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[http]`
    pub http: HttpLimits,
    /// `[http.tls]`
    pub tls: TlsSettings,
    /// `[auth]`
    pub tokens: TokenSettings,
    /// `[http.mcp]`
    pub mcp_access: McpAccess,
    /// The key of request states that `[http.mcp]` names.
    pub mcp_state_key: Option<SecretString>,
    /// `[console]`
    pub console: ConsoleSettings,
    /// `[openai]`
    pub openai: OpenAiAccess,
    /// The key of encrypted reasoning that `[openai]` names.
    pub openai_seal_key: Option<SecretString>,
    /// `[store]`: the address and the cache.
    pub store: StoreConfig,
    /// `[store]`: the connections.
    pub connections: StoreSettings,
    /// `[store.objects]`; `None` leaves all contents in the database.
    pub objects: Option<ObjectSettings>,
    /// `[board]`: the address.
    pub board: BoardConfig,
    /// `[board]`: the retained events.
    pub events: BoardSettings,
    /// `[runs]`
    pub runs: RunSettings,
    /// `[runs]`: the limits of subagents.
    pub subagents: SubagentSettings,
    /// `[runs]`: how long open calls wait.
    pub answer_expiry: AnswerExpiry,
    /// `[runs]`: the limits of tool calls.
    pub call_limits: CallLimits,
    /// `[queue]`
    pub queue: QueueSettings,
    /// `[limits]`
    pub limits: Arc<Limits>,
    /// `[idempotency]`
    pub idempotency: IdempotencySettings,
    /// `[models]`
    pub models: ClientSettings,
    /// Model providers by name, the first half of `PROVIDER/MODEL`, with `[capabilities]`.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// `[prices]`. A model without an entry has an unknown cost.
    pub prices: PriceTable,
    /// `[context_windows]`: tokens of input and output together.
    pub context_windows: ContextWindows,
    /// `[workspace]`
    pub workspace: WorkspaceLimits,
    /// `[sandbox]`: where commands run.
    pub sandbox: SandboxConfig,
    /// `[sandbox]`: the commands and their limits. The network is missing.
    pub commands: CommandSettings,
    /// `[sandbox.network]`
    pub network: NetworkConfig,
    /// `[tools]`
    pub tools: DirectoryConfig,
    /// `[tools.http_fetch]`
    pub http_fetch: HttpFetchConfig,
    /// `[tools.secrets]`; `None` for a secret that is not set.
    pub tool_secrets: BTreeMap<String, Option<SecretString>>,
    /// `[mcp]`
    pub mcp: DirectoryConfig,
    /// `[webhooks]`: how messages are sent.
    pub sender: SenderSettings,
    /// `[webhooks]`: how messages about the ends of runs are sent.
    pub outbox: OutboxSettings,
    /// `[webhooks.secrets]`
    pub webhook_secrets: BTreeMap<String, WebhookSecretConfig>,
    /// `[retention]`: the rules for expired data.
    pub retention: RetentionRules,
    /// `[retention]`: how the rest is removed.
    pub sweeps: SweepSettings,
    /// `[agents]`
    pub agents: DirectoryConfig,
    /// `[metrics]`
    pub metrics: MetricsSettings,
    /// `[traces]`, with the variables of `OpenTelemetry`.
    pub traces: TraceSettings,
    /// `[shutdown]`
    pub drain: DrainSettings,
    /// `[log]`
    pub log: LogConfig,
}

impl Config {
    fn read(sections: &Sections<'_>) -> Result<Self, ConfigError> {
        let providers = providers::read(sections)?;
        Ok(Self {
            http: sections.read("http")?,
            tls: tls::read(sections)?,
            tokens: tokens::read(sections)?,
            mcp_access: sections.read("http.mcp")?,
            mcp_state_key: sections.secret(&["http", "mcp", "state_key_file"], &sections.read("http.mcp")?)?,
            console: sections.read("console")?,
            openai: sections.read("openai")?,
            openai_seal_key: sections.secret(&["openai", "seal_key_file"], &sections.read("openai")?)?,
            store: sections.read("store")?,
            connections: sections.read("store")?,
            objects: store::objects(sections)?,
            board: sections.read("board")?,
            events: sections.read("board")?,
            runs: runs::read(sections)?,
            subagents: sections.read("runs")?,
            answer_expiry: sections.read("runs")?,
            call_limits: sections.read("runs")?,
            queue: sections.read("queue")?,
            limits: Arc::new(limits::read(sections)?),
            idempotency: sections.read("idempotency")?,
            models: providers::client(sections)?,
            prices: prices::read(sections, &providers)?,
            context_windows: model_names::context_windows(sections, &providers)?,
            providers,
            workspace: sections.read("workspace")?,
            sandbox: sections.read("sandbox")?,
            commands: sandbox::commands(sections)?,
            network: sandbox::network(sections)?,
            tools: sections.read("tools")?,
            http_fetch: tools::http_fetch(sections)?,
            tool_secrets: tools::secrets(sections)?,
            mcp: sections.read("mcp")?,
            sender: sections.read("webhooks")?,
            outbox: sections.read("webhooks")?,
            webhook_secrets: tools::webhook_secrets(sections)?,
            retention: sections.read("retention")?,
            sweeps: sections.read("retention")?,
            agents: sections.read("agents")?,
            metrics: sections.read("metrics")?,
            traces: traces::read(sections)?,
            drain: sections.read("shutdown")?,
            log: sections.read("log")?,
        })
    }
}
