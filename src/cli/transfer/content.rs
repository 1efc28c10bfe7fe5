//! A stored content as JSON, with the check of its hash.

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use store::Store;
use values::session::{Hash, hash_content, hash_directory};
use values::tenant::TenantId;
use workspace::{Content, ContentKind, InvalidContent, Link, content_links};

/// How many chunks of a file are read at once.
const BATCH: usize = 16;

/// A content of a workspace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortableContent {
    hash: Hash,
    kind: Kind,
    /// The bytes, if they are UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Bytes,
    Chunks,
    Directory,
}

impl From<Content> for PortableContent {
    fn from(content: Content) -> Self {
        let (text, base64) = match String::from_utf8(content.bytes.into()) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
        };
        Self {
            hash: content.hash,
            kind: match content.kind {
                ContentKind::Bytes => Kind::Bytes,
                ContentKind::Chunks => Kind::Chunks,
                ContentKind::Directory => Kind::Directory,
            },
            text,
            base64,
        }
    }
}

impl PortableContent {
    /// Returns whether it is a list of chunks.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Chunks)
    }

    /// Decodes the content and checks its hash. The hash of a list of chunks is the hash of the
    /// whole file, whose chunks must be stored already.
    pub(super) async fn into_content(self, store: &dyn Store, tenant: &TenantId) -> anyhow::Result<Content> {
        let hash = self.hash;
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Bytes::from(text),
            (None, Some(text)) => Bytes::from(STANDARD.decode(text).with_context(|| format!("the content {hash}"))?),
            _ => bail!("the content {hash} has no bytes"),
        };
        let (kind, actual) = match self.kind {
            Kind::Bytes => (ContentKind::Bytes, hash_content(&bytes)),
            Kind::Directory => (ContentKind::Directory, hash_directory(&bytes)),
            Kind::Chunks => (ContentKind::Chunks, hash_chunks(store, tenant, hash, &bytes).await?),
        };
        ensure!(actual == hash, "the content {hash} differs from its hash");
        Ok(Content { hash, kind, bytes })
    }
}

/// Hashes the file of a list of chunks.
async fn hash_chunks(store: &dyn Store, tenant: &TenantId, hash: Hash, list: &[u8]) -> anyhow::Result<Hash> {
    let links = content_links(ContentKind::Chunks, list);
    let links = links
        .map_err(|error: InvalidContent| error)
        .with_context(|| format!("the content {hash}"))?;
    let chunks: Vec<Hash> = links.iter().map(Link::hash).collect();
    let mut hasher = blake3::Hasher::new();
    for batch in chunks.chunks(BATCH) {
        for (chunk, found) in batch.iter().zip(store.content_load(tenant, batch).await?) {
            match found {
                Some(content) if hash_content(&content.bytes) == *chunk => hasher.update(&content.bytes),
                _ => bail!("the content {hash} comes before its chunk {chunk}"),
            };
        }
    }
    Ok(Hash::from(*hasher.finalize().as_bytes()))
}
