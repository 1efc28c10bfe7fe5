//! The flags that several commands share. A command has only those that mean something to it.

use std::path::PathBuf;

use crate::config::{self, ConfigError, Loaded, Sources};

/// The flags of a command that reads settings.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct SettingsArgs {
    /// Reads this configuration file.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Sets a configuration key, such as `http.listen=127.0.0.1:9000`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = config::parse_override)]
    overrides: Vec<(String, String)>,
}

/// The flags of a command that opens the store.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The store; short for `--set store.url=…`.
    #[arg(long, value_name = "URL")]
    store_url: Option<String>,
}

/// The flags of the service.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Serves on this address; short for `--set http.listen=…`.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Serves beyond loopback without any API key: every client that reaches the port may run
    /// agents.
    #[arg(long)]
    insecure_no_auth: bool,
    /// The role of this process: `api`, `worker` or `all`; short for `--set queue.role=…`.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

impl SettingsArgs {
    /// Loads the settings.
    pub(super) fn load(self) -> Result<Loaded, ConfigError> {
        self.load_with([])
    }

    /// Loads the settings with those of other flags, which win over `--set`.
    fn load_with<const N: usize>(self, flags: [(&str, Option<String>); N]) -> Result<Loaded, ConfigError> {
        let flags = flags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let overrides = self.overrides.into_iter().chain(flags).collect();
        config::load(&Sources::from_process(self.config, overrides))
    }
}

impl StoreArgs {
    /// Returns whether any of the flags is given.
    pub(super) fn is_given(&self) -> bool {
        self.store_url.is_some() || self.settings.config.is_some() || !self.settings.overrides.is_empty()
    }

    /// Loads the settings.
    pub(super) fn load(self) -> Result<Loaded, ConfigError> {
        self.settings.load_with([("store.url", self.store_url)])
    }
}

impl ServeArgs {
    /// Loads the settings.
    pub(super) fn load(self) -> Result<Loaded, ConfigError> {
        let insecure = self.insecure_no_auth.then(|| "true".to_owned());
        self.store.settings.load_with([
            ("store.url", self.store.store_url),
            ("http.listen", self.listen),
            ("http.insecure_no_auth", insecure),
            ("queue.role", self.role),
        ])
    }
}
