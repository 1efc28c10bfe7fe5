//! Whether metrics are counted and where they can be read. Values only.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use values::settings::text;
use values::tenant::TenantId;

/// The most tenants with series of their own.
const MAX_TENANTS: usize = 50;

/// Whether metrics are counted and where they can be read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MetricsSettings {
    /// Whether `GET /metrics` responds to keys with the scope `metrics`.
    enabled: bool,
    /// Where `GET /metrics` responds without a key; `None` for nowhere.
    #[serde(deserialize_with = "listen")]
    pub listen: Option<SocketAddr>,
    /// The tenants with series of their own.
    #[serde(deserialize_with = "tenants")]
    pub tenants: BTreeSet<TenantId>,
}

impl MetricsSettings {
    /// Returns whether anything is counted.
    pub fn is_on(&self) -> bool {
        self.enabled || self.listen.is_some()
    }
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let wanted = "\"\", or an IP address and a port, such as \"127.0.0.1:9464\"";
    text(deserializer, wanted, |words| match words {
        "" => Some(None),
        address => address.parse().ok().map(Some),
    })
}

fn tenants<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<TenantId>, D::Error> {
    let tenants = BTreeSet::<TenantId>::deserialize(deserializer)?;
    if tenants.len() > MAX_TENANTS {
        let words = format!("at most {MAX_TENANTS} tenants can have series of their own");
        return Err(D::Error::custom(words));
    }
    Ok(tenants)
}
