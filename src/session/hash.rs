//! Hashes that address and verify the parts of a session: BLAKE3, with a separate domain for each
//! kind.
//!
//! Environment and stored context are canonical JSON, addressed by hash within a tenant, so an
//! unchanged state is not written again. The root hash of a session covers its parts, its parent's
//! root hash and, if present, `subagent_of`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::json::{Object, canonical_bytes};

/// A BLAKE3 hash of 32 bytes; text and JSON show it in lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
pub struct Hash([u8; 32]);

/// A text that is not 64 hexadecimal digits, or bytes that are not 32.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct ParseHashError;

impl Hash {
    /// Returns the bytes, for storage.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Hash {
    type Error = ParseHashError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseHashError> {
        bytes.try_into().map(Self).map_err(|_| ParseHashError)
    }
}

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| ParseHashError)
    }
}

impl TryFrom<String> for Hash {
    type Error = ParseHashError;

    fn try_from(text: String) -> Result<Self, ParseHashError> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Hashes the canonical bytes of an environment state.
pub fn hash_environment(bytes: &[u8]) -> Hash {
    hash_in("agent-runtime environment v1", bytes)
}

/// Hashes the canonical bytes of a stored context.
pub fn hash_context(bytes: &[u8]) -> Hash {
    hash_in("agent-runtime context v1", bytes)
}

/// Hashes the encoded, uncompressed bytes of a segment of new messages.
pub fn hash_segment(bytes: &[u8]) -> Hash {
    hash_in("agent-runtime segment v1", bytes)
}

/// Hashes the canonical bytes of an agent definition; the hash names the version.
pub fn hash_definition(bytes: &[u8]) -> Hash {
    hash_in("agent-runtime definition v1", bytes)
}

/// All that a session's root hash covers.
#[derive(Debug, Clone, Copy)]
pub struct RootHashInput<'a> {
    /// The session's own id.
    pub session_id: SessionId,
    /// The root hash of its parent.
    pub parent: Option<Hash>,
    /// The environment's hash.
    pub environment: Hash,
    /// The stored context's hash.
    pub context: Hash,
    /// The hash of the messages that the session added.
    pub segment: Hash,
    /// The version of the agent's definition.
    pub agent_version: Option<Hash>,
    /// The agent's name.
    pub agent: &'a str,
    /// The metadata.
    pub metadata: &'a Object,
    /// The execution count.
    pub execution_count: u64,
    /// The number of messages in the whole history.
    pub message_count: u64,
    /// When the session was made.
    pub created_at: Timestamp,
    /// The session of the agent that started this one.
    pub subagent_of: Option<SessionId>,
}

/// Returns the root hash: through the parent's it covers the whole line of sessions.
pub fn root_hash(input: &RootHashInput<'_>) -> Result<Hash, serde_json::Error> {
    let mut hasher = blake3::Hasher::new_derive_key("agent-runtime root v1");
    hasher.update(input.session_id.as_uuid().as_bytes());
    for part in [
        input.parent,
        Some(input.environment),
        Some(input.context),
        Some(input.segment),
        input.agent_version,
    ] {
        // A missing part and a part of zeros must differ, so each has a mark of its own.
        match part {
            Some(hash) => hasher.update(&[1]).update(hash.as_bytes()),
            None => hasher.update(&[0]),
        };
    }
    for bytes in [input.agent.as_bytes(), &canonical_bytes(input.metadata)?] {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    hasher.update(&input.execution_count.to_le_bytes());
    hasher.update(&input.message_count.to_le_bytes());
    hasher.update(&input.created_at.timestamp_micros().to_le_bytes());
    // The last part, and none without a value: sessions from before it was known keep their hashes.
    if let Some(session_id) = input.subagent_of {
        hasher.update(session_id.as_uuid().as_bytes());
    }
    Ok(Hash(*hasher.finalize().as_bytes()))
}

fn hash_in(domain: &str, bytes: &[u8]) -> Hash {
    Hash(blake3::derive_key(domain, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_a_starter_has_the_root_hash_that_it_always_had() {
        let part = hash_segment(b"part");
        let metadata = Object::new();
        let input = RootHashInput {
            session_id: SessionId::from_uuid(uuid::Uuid::from_u128(1)),
            parent: Some(part),
            environment: part,
            context: part,
            segment: part,
            agent_version: None,
            agent: "demo",
            metadata: &metadata,
            execution_count: 2,
            message_count: 3,
            created_at: Timestamp::UNIX_EPOCH,
            subagent_of: None,
        };
        let hash = root_hash(&input).unwrap();
        assert_eq!(
            hash.to_string(),
            "549630e74da30db533859e003004ad9d0187e059a8fe2599b4ec1a2d6a20da54"
        );
        let started = |by: u128| RootHashInput {
            subagent_of: Some(SessionId::from_uuid(uuid::Uuid::from_u128(by))),
            ..input
        };
        let hashes = [hash, root_hash(&started(0)).unwrap(), root_hash(&started(4)).unwrap()];
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2]);
    }
}
