//! Settings that need more than the configuration: a file, a random key, or several sections.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use secrecy::ExposeSecret as _;

use crate::command_queue::CommandWorkerSettings;
use crate::config::Config;
use crate::http::{McpSettings, OpenAiSettings, Seal};
use board::RedisSettings;
use store::ContentSettings;
use tools::webhooks::{SigningKeys, WebhookSecret};

/// Returns the rules for contents of the store.
pub(super) fn contents(config: &Config) -> ContentSettings {
    ContentSettings {
        limits: Arc::clone(&config.limits),
        objects: config.objects.clone(),
    }
}

pub(super) fn redis_board(config: &Config) -> anyhow::Result<RedisSettings> {
    let read = |path: &PathBuf| {
        let ca = fs::read(path);
        ca.with_context(|| format!("can't read `board.ca_file` {}", path.display()))
    };
    Ok(RedisSettings {
        ca: config.board.ca_file.as_ref().map(read).transpose()?,
        board: config.events,
        ..RedisSettings::default()
    })
}

/// Returns the settings of a worker for commands.
pub(super) fn command_worker(config: &Config) -> CommandWorkerSettings {
    CommandWorkerSettings {
        concurrency: config.sandbox.worker_commands,
        poll_interval: config.queue.poll_interval,
        workspace: config.workspace,
    }
}

/// Makes the settings of `/mcp`; `None` if it is not served.
pub(super) fn mcp(config: &Config) -> anyhow::Result<Option<McpSettings>> {
    if !config.mcp_access.enabled {
        return Ok(None);
    }
    let key = config.mcp_state_key.as_ref();
    let key = key.map(|key| key.expose_secret().as_bytes());
    if key.is_none() && config.board.url.is_some() {
        tracing::warn!(
            "no key for the request states of MCP clients: a call that waits for answers can be answered by the same \
             process only (http.mcp.state_key_env)"
        );
    }
    let settings = McpSettings::new(key);
    settings
        .map(Some)
        .context("the key that `http.mcp` names can't be used")
}

/// Makes the settings of the routes for OpenAI's clients.
pub(super) fn openai(config: &Config) -> anyhow::Result<OpenAiSettings> {
    let seal = match &config.openai_seal_key {
        Some(key) => Seal::new(key.expose_secret().as_bytes()),
        None => Seal::random(),
    };
    let seal = seal.context("the key that `openai` names can't be used")?;
    Ok(OpenAiSettings {
        access: config.openai,
        seal: Some(seal),
    })
}

/// Reads the signing secrets. A missing secret is an error only if a hook names it.
pub(super) fn webhook_secrets(config: &Config) -> anyhow::Result<BTreeMap<String, WebhookSecret>> {
    let secrets = config.webhook_secrets.iter().map(|(name, source)| {
        let secret = source.secret.as_ref();
        let keys = secret.map(|secret| SigningKeys::parse(secret.expose_secret()));
        let keys = keys
            .transpose()
            .with_context(|| format!("webhooks.secrets.{name} can't be used"))?;
        let tenants = source.tenants.clone();
        Ok((name.clone(), WebhookSecret { keys, tenants }))
    });
    secrets.collect()
}

#[cfg(test)]
mod tests {
    use crate::config::{self, Sources};
    use board::BoardSettings;
    use models::ClientSettings;
    use tools::webhooks::SenderSettings;

    #[test]
    fn defaults_of_modules_are_those_of_the_configuration() {
        let config = config::load(&Sources::default()).unwrap().config;
        assert_eq!(config.events, BoardSettings::default());
        assert_eq!(config.sender, SenderSettings::default());
        let (client, default) = (config.models, ClientSettings::default());
        assert_eq!((client.timeouts, client.retries), (default.timeouts, default.retries));
        assert_eq!(client.caps, default.caps);
    }
}
