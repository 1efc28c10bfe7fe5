//! The port to stored contents: bytes that a hash addresses within a tenant.
//!
//! An implementation need not check hashes. The tree checks each content that it loads.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use values::session::Hash;
use values::tenant::TenantId;

/// The form of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// A whole file, or one chunk of a large file. Its hash is the plain BLAKE3 of the bytes.
    Bytes,
    /// The list of the chunks of a large file. Its hash is the hash of the whole file.
    Chunks,
    /// A directory, or a part of one. Its hash has a domain of its own.
    Directory,
}

/// Bytes and the hash that addresses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The hash, unique within a tenant.
    pub hash: Hash,
    pub kind: ContentKind,
    /// The bytes, uncompressed.
    pub bytes: Bytes,
}

/// The facts of a content that a store knows without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredContent {
    pub kind: ContentKind,
    /// The number of its bytes, uncompressed.
    pub size: u64,
}

/// Reads and writes the contents of one tenant.
#[async_trait]
pub trait Contents: Send + Sync + fmt::Debug {
    /// Returns the tenant, for which large contents are hashed off the async workers.
    fn tenant(&self) -> &TenantId;

    /// Loads contents, in the order of the hashes. Fails with [`ContentsError::Missing`] if one is
    /// not stored.
    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError>;

    /// Stores contents. Storing one again renews the time until which it may stay unreferenced.
    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError>;

    /// Finds the stored ones among these contents. Renews the time until which they may stay
    /// unreferenced.
    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError>;
}

/// Why contents can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// A content is not stored.
    #[error("the content {hash} is not stored")]
    Missing { hash: Hash },
    /// A content does not match its hash, or not its kind in the tree.
    #[error("the content {hash} is damaged")]
    Corrupt { hash: Hash },
    /// The tenant may not store more. Nothing refers to the contents that were stored.
    #[error("the files of all sessions would have more than {limit} bytes, the most that may be stored")]
    Full {
        /// The most bytes.
        limit: u64,
    },
    /// The storage failed.
    #[error("the contents are unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}
