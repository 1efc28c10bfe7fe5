//! Committed bundles in memory. They never change, so an entry is valid for ever; only its size in bytes bounds the cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::error::{CommitError, StoreError};
use super::traits::{Commit, Store};
use super::weight::Weight;
use crate::ids::SessionId;
use crate::session::{Bundle, History};
use crate::tenant::TenantId;

/// What entries are weighed in, so that a cache of more than 4 GB fits the counter.
const UNIT: u64 = 1024;

type Key = (TenantId, SessionId);

/// Reads and publishes bundles through a cache, so that continuing a hot session reads nothing from the database.
#[derive(Debug)]
pub struct Sessions {
    store: Arc<dyn Store>,
    /// Absent when the cache is turned off.
    cache: Option<Cache<Key, Entry>>,
    /// Loads under way: those who want the same session wait for the first.
    loads: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Clone)]
struct Entry {
    bundle: Arc<Bundle>,
    weight: Weight,
}

impl Sessions {
    /// Puts a cache of so many bytes before the store; 0 turns it off.
    pub fn new(store: Arc<dyn Store>, cache_bytes: u64) -> Self {
        let cache = (cache_bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(cache_bytes / UNIT)
                // A session is mostly continued once, soon, and then never again.
                .eviction_policy(EvictionPolicy::lru())
                .weigher(|_, entry: &Entry| u32::try_from(entry.weight.total() / UNIT + 1).unwrap_or(u32::MAX))
                .build()
        });
        Self {
            store,
            cache,
            loads: Mutex::default(),
        }
    }

    /// Returns about how many bytes of memory the cache holds.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| {
            cache.run_pending_tasks();
            cache.weighted_size() * UNIT
        })
    }

    /// Returns a bundle with the messages that running it needs; `None` when there is no such session or it belongs to another
    /// tenant.
    pub async fn bundle(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Arc<Bundle>>, StoreError> {
        let Some(cache) = &self.cache else {
            let bundle = self.store.bundle_load(tenant, session_id).await?;
            return Ok(bundle.map(Arc::new));
        };
        let key = (tenant.clone(), session_id);
        if let Some(entry) = cache.get(&key) {
            return Ok(Some(entry.bundle));
        }
        let load = Load::join(&self.loads, key.clone());
        let _turn = load.lock.lock().await;
        // Whoever had the turn before has put it there.
        if let Some(entry) = cache.get(&key) {
            return Ok(Some(entry.bundle));
        }
        let Some(bundle) = self.store.bundle_load(tenant, session_id).await? else {
            return Ok(None);
        };
        let entry = Entry::new(Arc::new(bundle), None);
        cache.insert(key, entry.clone());
        Ok(Some(entry.bundle))
    }

    /// Returns a bundle with all messages. What running it does not need is read anew and not kept.
    pub async fn whole_bundle(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<Arc<Bundle>>, StoreError> {
        let Some(bundle) = self.bundle(tenant, session_id).await? else {
            return Ok(None);
        };
        let held = &bundle.history;
        if held.first_index() == 0 {
            return Ok(Some(bundle));
        }
        // No memory holds more messages than that.
        let missing = u32::try_from(held.first_index()).unwrap_or(u32::MAX);
        let Some(earlier) = self.store.message_list(tenant, session_id, 0, missing).await? else {
            return Ok(None);
        };
        let history: History = earlier.messages.into_iter().chain(held.iter().cloned()).collect();
        Ok(Some(Arc::new(Bundle {
            history,
            ..(*bundle).clone()
        })))
    }

    /// Publishes a session and keeps its bundle and those of its subagents, since they are likely to be continued.
    pub async fn commit(&self, commit: &Commit) -> Result<Arc<Bundle>, CommitError> {
        let committed = self.store.session_commit(commit).await?;
        for child in committed.children {
            self.keep(&commit.tenant, &Arc::new(child));
        }
        let bundle = Arc::new(committed.session);
        self.keep(&commit.tenant, &bundle);
        Ok(bundle)
    }

    fn keep(&self, tenant: &TenantId, bundle: &Arc<Bundle>) {
        let Some(cache) = &self.cache else { return };
        let parent = bundle.head.parent_session_id;
        let parent = parent.and_then(|parent| cache.get(&(tenant.clone(), parent)));
        let entry = Entry::new(Arc::clone(bundle), parent.as_ref());
        cache.insert((tenant.clone(), bundle.head.session_id), entry);
    }
}

/// A place in the queue of those who want the same session; the last to leave takes the queue away.
struct Load<'a> {
    loads: &'a Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>,
    key: Key,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Load<'a> {
    fn join(loads: &'a Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>, key: Key) -> Self {
        let mut queues = loads.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(queues.entry(key.clone()).or_default());
        drop(queues);
        Self { loads, key, lock }
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        let mut queues = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's reference and this one: nobody joins while the map is locked.
        if Arc::strong_count(&self.lock) == 2 {
            queues.remove(&self.key);
        }
    }
}

impl Entry {
    /// Weighs a bundle; what it shares with its parent is not weighed again.
    fn new(bundle: Arc<Bundle>, parent: Option<&Self>) -> Self {
        let shared = parent.map(|parent| (&*parent.bundle, &parent.weight));
        let weight = Weight::of(&bundle, shared);
        Self { bundle, weight }
    }
}
