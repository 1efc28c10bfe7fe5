//! The settings of `/mcp` beside the limits of HTTP: whether it is served, and the key of request
//! states.

use rmcp::model::RequestStateCodec;
use serde::Deserialize;

/// The fewest bytes of a key.
const MIN_KEY_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;

/// Whether `/mcp` is served.
#[derive(Debug, Clone, Deserialize)]
pub struct McpAccess {
    /// Whether `/mcp` is served.
    pub enabled: bool,
}

/// The settings of `/mcp`.
#[derive(Debug, Clone)]
pub struct McpSettings {
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
    pub fn new(key: Option<&[u8]>) -> Result<Self, McpKeyError> {
        let states = if let Some(key) = key {
            RequestStateCodec::try_new(key).map_err(|_| McpKeyError::TooShort(key.len()))?
        } else {
            let mut random = [0; MIN_KEY_BYTES];
            getrandom::fill(&mut random).map_err(McpKeyError::NoRandomness)?;
            RequestStateCodec::new_unchecked(random)
        };
        Ok(Self { states })
    }
}
