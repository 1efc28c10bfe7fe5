//! `[tools]`: the folder of HTTP tools, their secrets, and where tools may send requests.
//!
//! A secret itself is never part of the configuration. It is read from the named variable or file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::error::Fault;
use super::values::{Text, duration, filled, integer, path, variable_name};
use net::outgoing::{HostPattern, HttpMethod, Network};

/// Settings of tools that do more than compute.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsConfig {
    /// A directory of `*.toml`, each with HTTP tools; it need not exist.
    #[serde(deserialize_with = "directory")]
    pub directory: PathBuf,
    pub http_fetch: HttpFetchConfig,
    /// Secrets by the name that HTTP tools use.
    pub secrets: BTreeMap<String, ToolSecretConfig>,
}

/// Where a secret is found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSecretConfig {
    /// The environment variable that holds it.
    #[serde(default, deserialize_with = "variable_name")]
    pub env: Option<String>,
    /// A file that holds it; it wins over `env`.
    #[serde(default, deserialize_with = "path")]
    pub file: Option<PathBuf>,
    /// The secret that was found when the configuration was loaded.
    #[serde(skip)]
    pub secret: Option<SecretString>,
}

/// Where the tool `http_fetch` may send requests, and how large they may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpFetchConfig {
    /// The hosts that it may reach; empty permits all.
    pub allow_hosts: Vec<HostPattern>,
    /// The hosts that it may not reach.
    pub deny_hosts: Vec<HostPattern>,
    /// The ports that it may reach; empty permits all but those of other protocols.
    pub ports: BTreeSet<u16>,
    /// Networks that are not public and that it may reach.
    pub allow_networks: Vec<Network>,
    /// Also sends unencrypted.
    pub allow_http: bool,
    pub methods: BTreeSet<HttpMethod>,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// From the start to the last byte, with all redirects.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub timeout: Duration,
    #[serde(deserialize_with = "integer::<_, 0, 20, _>")]
    pub max_redirects: usize,
    /// The most bytes of a response that are read.
    #[serde(deserialize_with = "integer::<_, 1_024, 67_108_864, _>")]
    pub max_response_bytes: usize,
    /// The bytes of text of a call that asks for no number.
    #[serde(deserialize_with = "integer::<_, 256, 67_108_864, _>")]
    pub text_bytes: usize,
    /// Empty for that of the service.
    #[serde(deserialize_with = "user_agent")]
    pub user_agent: String,
}

pub(super) fn check(tools: &ToolsConfig) -> Result<(), Fault> {
    if tools.http_fetch.methods.is_empty() {
        return Err(Fault::new(
            &["tools", "http_fetch", "methods"],
            "names no method, such as \"GET\"",
        ));
    }
    for (name, source) in &tools.secrets {
        if name.is_empty() || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
            let problem = "a secret's name can't be empty or hold blanks";
            return Err(Fault::new(&["tools", "secrets", name], problem));
        }
        if source.env.is_none() && source.file.is_none() {
            let problem = "names neither `env` nor `file`";
            return Err(Fault::new(&["tools", "secrets", name], problem));
        }
    }
    Ok(())
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    filled(deserializer).map(PathBuf::from)
}

fn user_agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Text::new("printable ASCII, such as \"my-agents/1.0\"", |text: &str| {
        let is_printable = text.chars().all(|c| (' '..='~').contains(&c));
        is_printable.then(|| text.trim().to_owned())
    }))
}
