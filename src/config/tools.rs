//! `[tools]`, `[mcp]` and `[agents]`: the folders of definitions. `[tools.http_fetch]`,
//! `[tools.secrets]` and `[webhooks.secrets]`: the data that tools and webhooks may send, and the
//! hosts.
//!
//! A secret itself is never part of the configuration. It is read from the named variable or file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::error::ConfigError;
use super::secrets::SecretSource;
use super::sections::Sections;
use net::outgoing::{AddressRules, ClientSettings, RuleKeys};
use tools::HttpFetchSettings;
use tools::webhooks::SecretTenants;
use values::settings::directory;

/// Where definitions are read from.
#[derive(Clone, Debug, Deserialize)]
pub struct DirectoryConfig {
    /// A directory of `*.toml`; it need not exist.
    #[serde(deserialize_with = "directory")]
    pub directory: PathBuf,
}

/// The requests that the tool `http_fetch` may send.
#[derive(Clone, Debug)]
pub struct HttpFetchConfig {
    pub settings: HttpFetchSettings,
    pub rules: AddressRules,
    pub client: ClientSettings,
}

/// A signing secret, and the tenants whose runs it signs for.
#[derive(Clone, Debug, Deserialize)]
pub struct WebhookSecretConfig {
    #[serde(default)]
    pub tenants: SecretTenants,
    /// The secret that was found; several are separated by blanks.
    #[serde(skip)]
    pub secret: Option<SecretString>,
}

/// Reads the settings of `http_fetch`.
pub(super) fn http_fetch(sections: &Sections<'_>) -> Result<HttpFetchConfig, ConfigError> {
    Ok(HttpFetchConfig {
        settings: sections.read("tools.http_fetch")?,
        rules: AddressRules {
            keys: RuleKeys {
                allow_http: "tools.http_fetch.allow_http",
                private: "tools.http_fetch.allow_networks",
            },
            ..sections.read("tools.http_fetch")?
        },
        client: ClientSettings {
            decompress: true,
            ..sections.read("tools.http_fetch")?
        },
    })
}

/// Finds the secrets of tools.
pub(super) fn secrets(sections: &Sections<'_>) -> Result<BTreeMap<String, Option<SecretString>>, ConfigError> {
    named_secrets(sections, "tools")
}

/// Finds the secrets that sign webhooks.
pub(super) fn webhook_secrets(sections: &Sections<'_>) -> Result<BTreeMap<String, WebhookSecretConfig>, ConfigError> {
    let mut secrets: BTreeMap<String, WebhookSecretConfig> = sections.read("webhooks.secrets")?;
    for (name, found) in named_secrets(sections, "webhooks")? {
        if let Some(secret) = secrets.get_mut(&name) {
            secret.secret = found;
        }
    }
    Ok(secrets)
}

/// Finds the secrets in the table `secrets` of a section.
fn named_secrets(
    sections: &Sections<'_>,
    section: &str,
) -> Result<BTreeMap<String, Option<SecretString>>, ConfigError> {
    let sources: BTreeMap<String, SecretSource> = sections.read(&format!("{section}.secrets"))?;
    let found = |(name, source): (String, SecretSource)| -> Result<_, ConfigError> {
        let invalid = |problem: &str| Err(sections.invalid(&[section, "secrets", &name], problem));
        if name.is_empty() || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return invalid("a secret's name can't be empty or hold blanks");
        }
        if source.env.is_none() && source.file.is_none() {
            return invalid("names neither `env` nor `file`");
        }
        let secret = sections.secret(&[section, "secrets", &name, "file"], &source)?;
        Ok((name, secret))
    };
    sources.into_iter().map(found).collect()
}
