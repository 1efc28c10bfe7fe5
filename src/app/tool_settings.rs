//! Maps the configuration to the settings of tools over HTTP.

use std::time::Duration;

use anyhow::Context as _;

use crate::config::Config;
use crate::outgoing::{AddressRules, ClientSettings, HeaderValue, PrivateAddresses, RuleKeys};
use crate::tools::{HttpFetchSettings, ToolSecrets};

/// How long connecting for an HTTP tool may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The room of a result for what comes before the text: the status, headers and notes.
const HEAD_BYTES: usize = 8 << 10;
/// The least text of a result, even if the configuration leaves less room.
const MIN_TEXT_BYTES: usize = 1 << 10;

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

/// Returns the secrets. A missing one is an error only if a tool names it.
pub(super) fn secrets(config: &Config) -> ToolSecrets {
    let secrets = config.tools.secrets.iter();
    secrets
        .map(|(name, source)| (name.clone(), source.secret.clone()))
        .collect()
}
