//! `[sandbox.network]`: the hosts that commands may reach through the proxy of the service.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::error::Fault;
use super::values::{duration, integer};
use net::outgoing::{HostPattern, Network};

/// The network of commands. They have none if no host is allowed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// The hosts that commands may reach; empty for no network.
    pub allow_hosts: Vec<HostPattern>,
    /// The ports that they may reach; empty permits all but those of other protocols.
    pub ports: BTreeSet<u16>,
    /// Networks that are not public and that they may reach.
    pub allow_networks: Vec<Network>,
    /// Connections of a command at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_connections: usize,
    /// Bytes of a command in both directions.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_099_511_627_776, _>")]
    pub max_bytes: u64,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// How long a connection may be silent.
    #[serde(deserialize_with = "duration::<100, 3_600_000, _>")]
    pub idle_timeout: Duration,
    /// How long a connection may last.
    #[serde(deserialize_with = "duration::<1_000, 86_400_000, _>")]
    pub max_connection_time: Duration,
    /// Secrets by the variable in which commands find the placeholder.
    pub secrets: BTreeMap<String, NetworkSecretConfig>,
}

/// A secret that the proxy adds to requests for a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSecretConfig {
    /// The host, with a port if it is not 443.
    pub host: String,
    /// The header of the secret.
    pub header: String,
    /// What comes before the secret.
    #[serde(default)]
    pub prefix: String,
    /// The name of the secret in `[tools.secrets]`.
    pub secret: String,
}

impl NetworkConfig {
    /// Returns whether commands have a network.
    pub fn is_on(&self) -> bool {
        !self.allow_hosts.is_empty()
    }
}

pub(super) fn check(network: &NetworkConfig) -> Result<(), Fault> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_variable = |name: &str| name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    match network.secrets.keys().find(|name| !is_variable(name)) {
        Some(name) => {
            let problem = "is not the name of a variable, such as \"GITHUB_TOKEN\"";
            Err(Fault::new(&["sandbox", "network", "secrets", name], problem))
        }
        None => Ok(()),
    }
}
