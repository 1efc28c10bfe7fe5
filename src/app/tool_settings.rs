//! Maps the configuration to the settings of tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command_network;
use crate::config::Config;
use net::outgoing::ClientSettings;
use sandbox::SandboxSettings;
use tools::mcp::McpDefinition;
use tools::{CommandSettings, HttpFetchSettings, ToolSecrets};

/// How long connecting for an HTTP tool may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The room of a result for the part before the text: the status, headers and notes.
const HEAD_BYTES: usize = 8 << 10;
/// The least text of a result, even if the configuration leaves less room.
const MIN_TEXT_BYTES: usize = 1 << 10;

pub(super) fn commands(config: &Config, helper: Option<PathBuf>) -> anyhow::Result<CommandSettings> {
    let commands = &config.commands;
    let network = command_network::network(config)?;
    Ok(CommandSettings {
        sandbox: SandboxSettings {
            helper: helper.unwrap_or_else(|| commands.sandbox.helper.clone()),
            proxy: network.is_some(),
            ..commands.sandbox.clone()
        },
        directory: command_directory(&commands.directory),
        network,
        ..commands.clone()
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

/// Returns the settings of `http_fetch`, whose text must fit into the result of a tool.
pub(super) fn http_fetch(config: &Config) -> HttpFetchSettings {
    let fetch = &config.http_fetch.settings;
    let max_text_bytes = config.call_limits.max_output_bytes.saturating_sub(HEAD_BYTES);
    let max_text_bytes = max_text_bytes.max(MIN_TEXT_BYTES);
    HttpFetchSettings {
        max_text_bytes,
        default_text_bytes: fetch.default_text_bytes.min(max_text_bytes),
        ..fetch.clone()
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
    config.tool_secrets.clone().into_iter().collect()
}
