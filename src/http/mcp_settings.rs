//! The settings of `/mcp` beside the limits of HTTP: the origins of web pages, and the key of
//! request states.

use std::collections::BTreeSet;

use rmcp::model::RequestStateCodec;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};

/// The fewest bytes of a key.
const MIN_KEY_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;

/// Whether `/mcp` is served, and to which web pages.
#[derive(Debug, Clone, Deserialize)]
pub struct McpAccess {
    /// Whether `/mcp` is served.
    pub enabled: bool,
    /// The origins of web pages that may call, besides the origin of the service itself; in lower
    /// case.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: BTreeSet<String>,
}

/// The settings of `/mcp`.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// The origins of web pages that may call, besides the origin of the service itself.
    pub allowed_origins: BTreeSet<String>,
    /// Signs and checks request states.
    pub(super) states: RequestStateCodec,
}

/// The reason why a key of request states can't be used.
#[derive(Debug, thiserror::Error)]
pub enum McpKeyError {
    /// The key is too short.
    #[error("the key has {0} bytes, and at least {MIN_KEY_BYTES} are needed")]
    TooShort(usize),
    /// There is no randomness for a key.
    #[error("no random key can be made: {0}")]
    NoRandomness(getrandom::Error),
}

impl McpSettings {
    /// Makes settings with a key that all replicas share, or with a random one of this process.
    pub fn new(allowed_origins: BTreeSet<String>, key: Option<&[u8]>) -> Result<Self, McpKeyError> {
        let states = if let Some(key) = key {
            RequestStateCodec::try_new(key).map_err(|_| McpKeyError::TooShort(key.len()))?
        } else {
            let mut random = [0; MIN_KEY_BYTES];
            getrandom::fill(&mut random).map_err(McpKeyError::NoRandomness)?;
            RequestStateCodec::new_unchecked(random)
        };
        Ok(Self {
            allowed_origins,
            states,
        })
    }
}

/// Reads the origins of web pages, in lower case.
fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"-_.:[]".contains(&c);
    let is_origin = |origin: &str| {
        let host = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        host.is_some_and(|host| !host.is_empty() && host.bytes().all(allowed))
    };
    let origins = BTreeSet::<String>::deserialize(deserializer)?;
    let origins: BTreeSet<String> = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
    if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
        let wanted = "origins of web pages, such as \"https://app.example.org\" or \"http://localhost:6274\"";
        return Err(D::Error::invalid_value(Unexpected::Str(wrong), &wanted));
    }
    Ok(origins)
}
