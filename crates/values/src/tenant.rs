//! The tenant: the owner of a row. Every read names one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name of a tenant, in bytes.
const MAX_LENGTH: usize = 64;

/// Names a tenant: 1 to 64 lower-case letters, digits, `-` and `_`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantId(Arc<str>);

/// A text that can't name a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tenant's name has 1 to 64 lower-case letters, digits, `-` and `_`")]
pub struct ParseTenantError;

impl TenantId {
    /// Returns the tenant of a service without API keys.
    pub fn anonymous() -> Self {
        Self(Arc::from("default"))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TenantId {
    type Err = ParseTenantError;

    fn from_str(text: &str) -> Result<Self, ParseTenantError> {
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
        let valid = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed);
        if valid {
            Ok(Self(Arc::from(text)))
        } else {
            Err(ParseTenantError)
        }
    }
}

impl TryFrom<String> for TenantId {
    type Error = ParseTenantError;

    fn try_from(text: String) -> Result<Self, ParseTenantError> {
        text.parse()
    }
}

impl From<TenantId> for String {
    fn from(tenant: TenantId) -> Self {
        tenant.as_str().to_owned()
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({})", self.0)
    }
}
