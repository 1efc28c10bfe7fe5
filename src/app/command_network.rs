//! Maps the configuration to the network of commands.

use std::sync::Arc;

use anyhow::{Context as _, ensure};

use crate::config::Config;
use net::egress::{EgressLimits, EgressPorts, EgressProxy, HostSecret};
use net::http_client;
use net::outgoing::{AddressRules, HostPattern, PrivateAddresses, RuleKeys, SystemResolver};
use tools::CommandNetwork;

/// Returns the network of commands, if they have one.
pub(super) fn network(config: &Config) -> anyhow::Result<Option<CommandNetwork>> {
    let network = &config.sandbox.network;
    if !network.is_on() {
        return Ok(None);
    }
    let rules = AddressRules {
        allow_http: true,
        private: PrivateAddresses::In(network.allow_networks.clone()),
        allow_hosts: network.allow_hosts.clone(),
        deny_hosts: Vec::new(),
        ports: network.ports.clone(),
        keys: RuleKeys {
            allow_http: "sandbox.network.ports",
            private: "sandbox.network.allow_networks",
        },
    };
    let limits = EgressLimits {
        connections: network.max_connections,
        bytes: network.max_bytes,
        connect_timeout: network.connect_timeout,
        idle_timeout: network.idle_timeout,
        connection_time: network.max_connection_time,
    };
    let ports = EgressPorts {
        resolver: Arc::new(SystemResolver),
        tls: http_client::tls()?,
    };
    Ok(Some(CommandNetwork {
        proxy: EgressProxy::new(rules, limits, secrets(config)?, ports)?,
        hosts: network.allow_hosts.iter().map(HostPattern::to_string).collect(),
    }))
}

/// Finds the secrets of the hosts. A missing one is an error.
fn secrets(config: &Config) -> anyhow::Result<Vec<HostSecret>> {
    let network = &config.sandbox.network;
    let secrets = network.secrets.iter().map(|(variable, declared)| {
        let key = || format!("`sandbox.network.secrets.{variable}`");
        let name = &declared.secret;
        let source = config.tools.secrets.get(name);
        let source = source.with_context(|| format!("{}: add `[tools.secrets.{name}]`", key()))?;
        let secret = source.secret.clone();
        let secret = secret.with_context(|| format!("{}: the secret {name:?} is not set", key()))?;
        let header = (declared.header.as_str(), declared.prefix.as_str());
        let secret = HostSecret::new(variable, &declared.host, header, secret).with_context(key)?;
        let is_allowed = network.allow_hosts.iter().any(|host| host.matches(secret.host()));
        ensure!(
            is_allowed,
            "{}: `sandbox.network.allow_hosts` does not have the host",
            key()
        );
        Ok(secret)
    });
    secrets.collect()
}
