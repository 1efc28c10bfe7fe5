//! Maps the configuration to the settings of tools over HTTP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::command_network;
use crate::config::Config;
use net::outgoing::{AddressRules, ClientSettings, HeaderValue, PrivateAddresses, RuleKeys};
use sandbox::{SandboxLimits, SandboxSettings};
use tools::mcp::McpDefinition;
use tools::{CommandSettings, HttpFetchSettings, MaxJobs, ToolSecrets};

/// How long connecting for an HTTP tool may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The room of a result for what comes before the text: the status, headers and notes.
const HEAD_BYTES: usize = 8 << 10;
/// The least text of a result, even if the configuration leaves less room.
const MIN_TEXT_BYTES: usize = 1 << 10;

pub(super) fn commands(config: &Config, helper: Option<PathBuf>) -> anyhow::Result<CommandSettings> {
    let sandbox = &config.sandbox;
    let default = SandboxSettings::default();
    let network = command_network::network(config)?;
    Ok(CommandSettings {
        sandbox: SandboxSettings {
            isolation: sandbox.isolation,
            namespaces: sandbox.namespaces,
            landlock_abi: sandbox.landlock_abi,
            helper: helper.unwrap_or(default.helper),
            landlock_abi_limit: default.landlock_abi_limit,
            proxy: network.is_some(),
            cgroup: (!sandbox.cgroup.as_os_str().is_empty()).then(|| sandbox.cgroup.clone()),
        },
        limits: SandboxLimits {
            wall_time: sandbox.max_time,
            cpu_time: sandbox.max_cpu_time,
            memory_bytes: sandbox.max_memory_bytes,
            processes: sandbox.max_processes,
            open_files: sandbox.max_open_files,
            file_bytes: sandbox.max_disk_bytes,
            disk_bytes: sandbox.max_disk_bytes,
            output_bytes: sandbox.max_output_bytes,
        },
        directory: command_directory(&sandbox.directory),
        retained_directories: sandbox.retained_directories,
        ephemeral: sandbox.ephemeral.clone(),
        read_only: sandbox.read_only.clone(),
        is_required: sandbox.required,
        network,
        max_commands: sandbox.max_commands,
        max_jobs: MaxJobs {
            of_run: sandbox.max_jobs_per_run,
            of_process: sandbox.max_jobs,
        },
    })
}

/// Returns the configured directory, or one of the user of the service in the system's temporary
/// directory.
fn command_directory(configured: &Path) -> PathBuf {
    if !configured.as_os_str().is_empty() {
        return configured.to_owned();
    }
    let user = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("agent-runtime-{user}"))
}

pub(super) fn http_fetch(config: &Config) -> anyhow::Result<HttpFetchSettings> {
    let fetch = &config.tools.http_fetch;
    let user_agent = match fetch.user_agent.as_str() {
        "" => None,
        name => Some(HeaderValue::from_str(name).context("`tools.http_fetch.user_agent` can't be sent")?),
    };
    let max_text_bytes = config.runs.max_tool_output_bytes.saturating_sub(HEAD_BYTES);
    let max_text_bytes = max_text_bytes.max(MIN_TEXT_BYTES);
    Ok(HttpFetchSettings {
        methods: fetch.methods.clone(),
        timeout: fetch.timeout,
        max_redirects: fetch.max_redirects,
        max_response_bytes: fetch.max_response_bytes,
        max_text_bytes,
        default_text_bytes: fetch.text_bytes.min(max_text_bytes),
        user_agent,
    })
}

pub(super) fn http_fetch_rules(config: &Config) -> AddressRules {
    let fetch = &config.tools.http_fetch;
    AddressRules {
        allow_http: fetch.allow_http,
        private: PrivateAddresses::In(fetch.allow_networks.clone()),
        allow_hosts: fetch.allow_hosts.clone(),
        deny_hosts: fetch.deny_hosts.clone(),
        ports: fetch.ports.clone(),
        keys: RuleKeys {
            allow_http: "tools.http_fetch.allow_http",
            private: "tools.http_fetch.allow_networks",
        },
    }
}

pub(super) fn http_fetch_client(config: &Config) -> ClientSettings {
    ClientSettings {
        connect_timeout: config.tools.http_fetch.connect_timeout,
        decompress: true,
    }
}

pub(super) fn http_tool_client() -> ClientSettings {
    ClientSettings {
        connect_timeout: CONNECT_TIMEOUT,
        decompress: true,
    }
}

pub(super) fn mcp_client(definition: &McpDefinition) -> ClientSettings {
    ClientSettings {
        connect_timeout: definition.connect_timeout(),
        decompress: true,
    }
}

/// Returns the secrets. A missing one is an error only if a tool names it.
pub(super) fn secrets(config: &Config) -> ToolSecrets {
    let secrets = config.tools.secrets.iter();
    secrets
        .map(|(name, source)| (name.clone(), source.secret.clone()))
        .collect()
}
