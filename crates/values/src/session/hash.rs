//! Hashes that address and verify the parts of a session: BLAKE3, with a separate domain for each
//! kind.
//!
//! Environments and stored contexts are canonical JSON. Their hashes address them within a tenant,
//! so an unchanged state is not written again. The root hash of a session is in `root_hash.rs`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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

/// Hashes the bytes of a file, or of a chunk of one, as `b3sum` does.
pub fn hash_content(bytes: &[u8]) -> Hash {
    Hash(*blake3::hash(bytes).as_bytes())
}

/// Hashes the encoded bytes of a directory of a workspace.
pub fn hash_directory(bytes: &[u8]) -> Hash {
    hash_in("agent-runtime directory v1", bytes)
}

fn hash_in(domain: &str, bytes: &[u8]) -> Hash {
    Hash(blake3::derive_key(domain, bytes))
}
