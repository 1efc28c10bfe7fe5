//! `[webhooks]`: how signed messages are sent to callers' addresses, and where signing secrets are
//! found.
//!
//! A secret itself is never part of the configuration. It is read from the named variable or file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::error::Fault;
use super::values::{duration, integer, path, variable_name};
use values::tenant::TenantId;

/// Means all tenants in `tenants`.
pub const ALL_TENANTS: &str = "*";

/// How signed messages are sent to addresses that callers name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Also connects to addresses that are not public.
    pub allow_private_addresses: bool,
    /// Also sends unencrypted.
    pub allow_http: bool,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// From the start to the last byte of the response.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub timeout: Duration,
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_response_bytes: usize,
    /// How often a message about a run's end is sent before the service gives up.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub max_attempts: u32,
    /// The longest pause after the first failure of a message.
    #[serde(deserialize_with = "duration::<10, 86_400_000, _>")]
    pub retry_base_delay: Duration,
    /// The longest pause of all.
    #[serde(deserialize_with = "duration::<10, 604_800_000, _>")]
    pub retry_max_delay: Duration,
    /// Messages that are sent at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub delivery_concurrency: usize,
    /// How often messages of other processes, and failed ones, are polled.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub poll_interval: Duration,
    /// Signing secrets by the name that agents and runs choose them by.
    pub secrets: BTreeMap<String, SecretSourceConfig>,
}

/// Where a signing secret is found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSourceConfig {
    /// The environment variable that holds it.
    #[serde(default, deserialize_with = "variable_name")]
    pub env: Option<String>,
    /// A file that holds it; it wins over `env`.
    #[serde(default, deserialize_with = "path")]
    pub file: Option<PathBuf>,
    /// The tenants whose runs it signs for; `["*"]` means all of them.
    #[serde(default)]
    pub tenants: BTreeSet<String>,
    /// The secret that was found when the configuration was loaded; several are separated by
    /// blanks.
    #[serde(skip)]
    pub secret: Option<SecretString>,
}

pub(super) fn check(webhooks: &WebhooksConfig) -> Result<(), Fault> {
    for (name, source) in &webhooks.secrets {
        if name.is_empty() || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
            let problem = "a secret's name can't be empty or hold blanks";
            return Err(Fault::new(&["webhooks", "secrets", name], problem));
        }
        if source.env.is_none() && source.file.is_none() {
            let problem = "names neither `env` nor `file`";
            return Err(Fault::new(&["webhooks", "secrets", name], problem));
        }
        let is_tenant = |tenant: &&String| *tenant == ALL_TENANTS || tenant.parse::<TenantId>().is_ok();
        if let Some(tenant) = source.tenants.iter().find(|tenant| !is_tenant(tenant)) {
            let problem = format!("{tenant:?} is not the name of a tenant");
            return Err(Fault::new(&["webhooks", "secrets", name, "tenants"], problem));
        }
    }
    Ok(())
}
