//! `[sandbox]` and `[sandbox.network]`: where the commands of agents run, their limits, and the
//! hosts that they may reach through the proxy of the service.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::error::ConfigError;
use super::sections::Sections;
use net::egress::EgressLimits;
use net::outgoing::{AddressRules, RuleKeys};
use sandbox::SandboxLimits;
use tools::CommandSettings;
use values::settings::{duration, integer};

/// Where commands run.
#[derive(Clone, Debug, Deserialize)]
pub struct SandboxConfig {
    /// The process that runs commands.
    pub backend: Backend,
    /// How long a command waits for a worker.
    #[serde(deserialize_with = "duration::<100, 3_600_000, _>")]
    pub worker_wait: Duration,
    /// Commands at a worker at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub worker_commands: usize,
}

/// The process that runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The process of the service.
    Local,
    /// Workers, which take them from the store.
    Worker,
}

/// The limits of a command. The sandbox sets no ranges for them, so the configuration does.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the keys of the configuration")]
struct CommandLimits {
    #[serde(deserialize_with = "duration::<1_000, 86_400_000, _>")]
    max_time: Duration,
    #[serde(deserialize_with = "duration::<1_000, 86_400_000, _>")]
    max_cpu_time: Duration,
    #[serde(deserialize_with = "integer::<_, 16_777_216, 1_099_511_627_776, _>")]
    max_memory_bytes: u64,
    #[serde(deserialize_with = "integer::<_, 8, 100_000, _>")]
    max_processes: u32,
    #[serde(deserialize_with = "integer::<_, 16, 1_000_000, _>")]
    max_open_files: u32,
    #[serde(deserialize_with = "integer::<_, 1_048_576, 1_099_511_627_776, _>")]
    max_disk_bytes: u64,
    #[serde(deserialize_with = "integer::<_, 1_024, 67_108_864, _>")]
    max_output_bytes: u64,
}

/// The network of commands. They have none if no host is allowed.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    pub rules: AddressRules,
    pub limits: EgressLimits,
    /// Secrets by the variable in which commands find the placeholder.
    pub secrets: BTreeMap<String, NetworkSecretConfig>,
}

/// A secret that the proxy adds to requests for a host.
#[derive(Clone, Debug, Deserialize)]
pub struct NetworkSecretConfig {
    /// The host, with a port if it is not 443.
    pub host: String,
    /// The header of the secret.
    pub header: String,
    /// The text before the secret.
    #[serde(default)]
    pub prefix: String,
    /// The name of the secret in `[tools.secrets]`.
    pub secret: String,
}

/// Reads the limits of commands.
pub(super) fn commands(sections: &Sections<'_>) -> Result<CommandSettings, ConfigError> {
    let limits: CommandLimits = sections.read("sandbox")?;
    Ok(CommandSettings {
        sandbox: sections.read("sandbox")?,
        limits: SandboxLimits {
            wall_time: limits.max_time,
            cpu_time: limits.max_cpu_time,
            memory_bytes: limits.max_memory_bytes,
            processes: limits.max_processes,
            open_files: limits.max_open_files,
            file_bytes: limits.max_disk_bytes,
            disk_bytes: limits.max_disk_bytes,
            output_bytes: limits.max_output_bytes,
        },
        max_jobs: sections.read("sandbox")?,
        ..sections.read("sandbox")?
    })
}

/// Reads the hosts that commands may reach.
pub(super) fn network(sections: &Sections<'_>) -> Result<NetworkConfig, ConfigError> {
    let secrets: BTreeMap<String, NetworkSecretConfig> = sections.read("sandbox.network.secrets")?;
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_variable = |name: &str| name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if let Some(name) = secrets.keys().find(|name| !is_variable(name)) {
        let problem = "is not the name of a variable, such as \"GITHUB_TOKEN\"";
        return Err(sections.invalid(&["sandbox", "network", "secrets", name], problem));
    }
    Ok(NetworkConfig {
        rules: AddressRules {
            allow_http: true,
            keys: RuleKeys {
                allow_http: "sandbox.network.ports",
                private: "sandbox.network.allow_networks",
            },
            ..sections.read("sandbox.network")?
        },
        limits: sections.read("sandbox.network")?,
        secrets,
    })
}
