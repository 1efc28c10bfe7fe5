//! Contents in memory, for tests and tools. Counts the loaded and stored contents.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::contents::{Content, Contents, ContentsError, StoredContent};
use values::session::Hash;
use values::tenant::TenantId;

/// Contents of one tenant in memory.
#[derive(Debug)]
pub struct InMemoryContents {
    tenant: TenantId,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    contents: HashMap<Hash, Content>,
    counts: ContentCounts,
}

/// How often contents were loaded and stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentCounts {
    /// The calls of `load`.
    pub loads: usize,
    /// The contents that they returned.
    pub loaded: usize,
    /// The calls of `store`.
    pub stores: usize,
    /// The contents that were passed to them, stored before or not.
    pub stored: usize,
    /// The bytes of those contents.
    pub stored_bytes: u64,
}

impl InMemoryContents {
    /// Creates contents for a tenant.
    pub fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            state: Mutex::default(),
        }
    }

    /// Returns the counts since the last call, and starts again at zero.
    pub fn take_counts(&self) -> ContentCounts {
        std::mem::take(&mut self.state.lock().counts)
    }

    /// Returns all contents, in no order.
    pub fn all(&self) -> Vec<Content> {
        self.state.lock().contents.values().cloned().collect()
    }

    /// Stores a content as it is, even if its hash is wrong.
    pub fn put(&self, content: Content) {
        self.state.lock().contents.insert(content.hash, content);
    }

    /// Removes a content.
    pub fn remove(&self, hash: &Hash) {
        self.state.lock().contents.remove(hash);
    }
}

impl Default for InMemoryContents {
    fn default() -> Self {
        Self::new(TenantId::anonymous())
    }
}

#[async_trait]
impl Contents for InMemoryContents {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        let mut state = self.state.lock();
        let load = |hash: &Hash| {
            state
                .contents
                .get(hash)
                .cloned()
                .ok_or(ContentsError::Missing { hash: *hash })
        };
        let loaded: Vec<_> = hashes.iter().map(load).collect::<Result<_, _>>()?;
        state.counts.loads += 1;
        state.counts.loaded += loaded.len();
        Ok(loaded)
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        let mut state = self.state.lock();
        state.counts.stores += 1;
        for content in contents {
            state.counts.stored += 1;
            state.counts.stored_bytes += content.bytes.len() as u64;
            state.contents.insert(content.hash, content);
        }
        Ok(())
    }

    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError> {
        let state = self.state.lock();
        let stored = |hash: &Hash| {
            let content = state.contents.get(hash)?;
            let size = content.bytes.len() as u64;
            Some((
                *hash,
                StoredContent {
                    kind: content.kind,
                    size,
                },
            ))
        };
        Ok(hashes.iter().filter_map(stored).collect())
    }
}
