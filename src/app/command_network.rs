//! Maps the configuration to the network of commands.

use std::sync::Arc;

use anyhow::{Context as _, ensure};

use crate::config::{Config, NetworkConfig};
use net::egress::{EgressPorts, EgressProxy, HostSecret};
use net::http_client;
use net::outgoing::{HostPattern, SystemResolver};
use tools::CommandNetwork;

/// Returns the network of commands, if they have one.
pub(super) fn network(config: &Config) -> anyhow::Result<Option<CommandNetwork>> {
    let NetworkConfig { rules, limits, .. } = &config.network;
    if rules.allow_hosts.is_empty() {
        return Ok(None);
    }
    let ports = EgressPorts {
        resolver: Arc::new(SystemResolver),
        tls: http_client::tls()?,
    };
    Ok(Some(CommandNetwork {
        proxy: EgressProxy::new(rules.clone(), *limits, secrets(config)?, ports)?,
        hosts: rules.allow_hosts.iter().map(HostPattern::to_string).collect(),
    }))
}

/// Finds the secrets of the hosts. A missing one is an error.
fn secrets(config: &Config) -> anyhow::Result<Vec<HostSecret>> {
    let network = &config.network;
    let secrets = network.secrets.iter().map(|(variable, declared)| {
        let key = || format!("`sandbox.network.secrets.{variable}`");
        let name = &declared.secret;
        let secret = config.tool_secrets.get(name);
        let secret = secret.with_context(|| format!("{}: add `[tools.secrets.{name}]`", key()))?;
        let secret = secret
            .clone()
            .with_context(|| format!("{}: the secret {name:?} is not set", key()))?;
        let header = (declared.header.as_str(), declared.prefix.as_str());
        let secret = HostSecret::new(variable, &declared.host, header, secret).with_context(key)?;
        let is_allowed = network.rules.allow_hosts.iter().any(|host| host.matches(secret.host()));
        ensure!(
            is_allowed,
            "{}: `sandbox.network.allow_hosts` does not have the host",
            key()
        );
        Ok(secret)
    });
    secrets.collect()
}
