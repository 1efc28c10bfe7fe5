//! A cache of committed bundles. Bundles never change, so only the size of the cache bounds how
//! long it holds an entry. Other processes may remove a session, so the cache checks again after a
//! few seconds whether the session of an entry exists.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::audit::Requester;
use super::error::{CommitError, StoreError};
use super::new_commit::commit_weight;
use super::retention::SessionRemoval;
use super::sessions::Commit;
use super::traits::Store;
use tasks::fair_share::{FairShare, Share};
use tasks::keyed::Turns;
use tasks::off_thread::by_size_of;
use values::clock::{Clock, Timestamp};
use values::ids::SessionId;
use values::json::weight;
use values::session::{Bundle, History, check_parts};
use values::tenant::TenantId;

/// The unit of an entry's weight in bytes. With a unit of one byte, the weights of a cache of more
/// than 4 GB would overflow the counter.
const UNIT: u64 = 1024;

/// How long the cache assumes that a session exists after a read, a commit or a check.
const MAX_UNCHECKED_AGE: Duration = Duration::from_secs(5);

/// The most removals in flight. A tenant has at most one of them.
const REMOVALS: usize = 2;

/// The number of removal counters. Tenants may share a counter: a removal by one then causes an
/// extra check of the other's entries, and no more.
const COUNTS: usize = 1 << u8::BITS;

/// The overhead of an entry.
const ENTRY: usize = 512;
/// The cost of a message in the history's list: a shared pointer and its slot in a tree.
const HISTORY_SLOT: usize = 64;

type Key = (TenantId, SessionId);

/// Reads and publishes bundles through a cache, so that continuing a hot session reads nothing from
/// the database.
#[derive(Debug)]
pub struct Sessions {
    store: Arc<dyn Store>,
    /// The cache; `None` if it is turned off.
    cache: Option<Cache<Key, Entry>>,
    /// Loads in flight: callers that want the same session wait for the first one to load it.
    loads: Turns<Key>,
    /// The removal counters. Each counts the removals of this process for some tenants. An entry is
    /// checked again if its tenant's counter has changed.
    removals: [AtomicU64; COUNTS],
    /// The bundles that were asked for, and those of them that the cache had.
    uses: CacheUses,
    /// Removals in flight.
    removing: Arc<FairShare>,
    clock: Arc<dyn Clock>,
    /// The most bytes that a part of a published session may have.
    max_part_bytes: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    bundle: Arc<Bundle>,
    weight: Weight,
    seen: Seen,
}

/// The memory of the parts of a bundle, in bytes. Shared parts count for each bundle, so the cache
/// stays within its bound.
#[derive(Debug, Clone, Copy)]
struct Weight {
    head: usize,
    environment: usize,
    context: usize,
    messages: usize,
    request_prefix: usize,
}

/// How often the cache was of use.
#[derive(Debug, Default)]
struct CacheUses {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The time and the removal counter at which a session was known to exist.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Timestamp,
    removals: u64,
}

impl Sessions {
    /// Puts a cache of `cache_bytes` in front of the store; 0 turns the cache off.
    pub fn new(store: Arc<dyn Store>, cache_bytes: u64, clock: Arc<dyn Clock>) -> Self {
        let cache = (cache_bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(cache_bytes / UNIT)
                // Most sessions are continued once, soon after their commit, and never again.
                .eviction_policy(EvictionPolicy::lru())
                .weigher(|_, entry: &Entry| u32::try_from(entry.weight.total() / UNIT + 1).unwrap_or(u32::MAX))
                .build()
        });
        Self {
            store,
            cache,
            loads: Turns::default(),
            removals: std::array::from_fn(|_| AtomicU64::new(0)),
            uses: CacheUses::default(),
            removing: FairShare::new(REMOVALS),
            clock,
            max_part_bytes: usize::MAX,
        }
    }

    /// Refuses to publish a session if one of its parts has more bytes of JSON. The parts are the
    /// messages needed to run it, its environment and its context.
    #[must_use]
    pub fn with_max_part_bytes(self, max_part_bytes: usize) -> Self {
        Self { max_part_bytes, ..self }
    }

    /// Returns the most bytes that a part of a session may have.
    pub fn max_part_bytes(&self) -> usize {
        self.max_part_bytes
    }

    /// Returns about how many bytes of memory the cache uses.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| {
            cache.run_pending_tasks();
            cache.weighted_size() * UNIT
        })
    }

    /// Returns how often the cache has had a bundle since the start, and how often it has not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.uses.hits), count(&self.uses.misses))
    }

    /// Returns a bundle with the messages needed to run it. Returns `None` if the session does not
    /// exist or belongs to another tenant.
    pub async fn bundle(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Arc<Bundle>>, StoreError> {
        let Some(cache) = &self.cache else {
            let bundle = self.store.bundle_load(tenant, session_id).await?;
            return Ok(bundle.map(Arc::new));
        };
        let key = (tenant.clone(), session_id);
        if let Some(entry) = cache.get(&key).filter(|entry| self.is_fresh(tenant, entry)) {
            self.uses.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(entry.bundle));
        }
        self.uses.misses.fetch_add(1, Ordering::Relaxed);
        let _turn = self.loads.take(key.clone()).await;
        let entry = match cache.get(&key) {
            // The caller with the turn before this one inserted it.
            Some(entry) if self.is_fresh(tenant, &entry) => entry,
            Some(entry) => {
                let seen = self.seen_now(tenant);
                if self.store.session_lookup(tenant, session_id).await?.is_none() {
                    cache.invalidate(&key);
                    return Ok(None);
                }
                Entry { seen, ..entry }
            }
            None => {
                let seen = self.seen_now(tenant);
                let Some(bundle) = self.store.bundle_load(tenant, session_id).await? else {
                    return Ok(None);
                };
                Entry::new(Arc::new(bundle), None, seen)
            }
        };
        cache.insert(key, entry.clone());
        Ok(Some(entry.bundle))
    }

    /// Returns a bundle with all messages. Does not cache the older messages, which are not needed
    /// to run the session.
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
        let missing = 0..held.first_index() as u64;
        let Some(earlier) = self.store.message_list(tenant, session_id, missing).await? else {
            return Ok(None);
        };
        let history: History = earlier.into_iter().chain(held.iter().cloned()).collect();
        Ok(Some(Arc::new(Bundle {
            history,
            ..(*bundle).clone()
        })))
    }

    /// Publishes a session. Caches its bundle and those of its subagents, since they are likely to
    /// be continued.
    pub async fn commit(&self, commit: &Commit) -> Result<Arc<Bundle>, CommitError> {
        let max_bytes = self.max_part_bytes;
        let check = move |commit: &Commit| commit.drafts().try_for_each(|draft| check_parts(draft, max_bytes));
        by_size_of(&commit.tenant, commit_weight(commit), commit, check).await?;
        let seen = self.seen_now(&commit.tenant);
        let committed = self.store.session_commit(commit).await?;
        for child in committed.children {
            self.insert(&commit.tenant, &Arc::new(child), seen);
        }
        let bundle = Arc::new(committed.session);
        self.insert(&commit.tenant, &bundle, seen);
        Ok(bundle)
    }

    /// Waits until the tenant may remove a session. Without this limit, removals would wait for
    /// each other in the database, and each would hold a connection.
    pub async fn removal_turn(&self, tenant: &TenantId) -> Share {
        self.removing.take(tenant, 1).await
    }

    /// Removes a session with its subagents' sessions and, if requested, with its descendants. The
    /// cache returns none of them afterwards.
    ///
    /// Must run in a task that is never cancelled, since the store finishes a removal even if its
    /// caller is gone. The turn then lasts until the removal ends.
    pub async fn remove(
        &self,
        turn: Share,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
        by: &Requester,
    ) -> Result<SessionRemoval, StoreError> {
        let removed = self.store.session_remove(tenant, session_id, descendants, by).await;
        // A removal of several sessions may fail after it has removed some of them.
        self.removals_of(tenant).fetch_add(1, Ordering::SeqCst);
        drop(turn);
        removed
    }

    /// Returns the current time and removal counter. Must be called before the store is read.
    fn seen_now(&self, tenant: &TenantId) -> Seen {
        Seen {
            at: self.clock.now(),
            removals: self.removals_of(tenant).load(Ordering::SeqCst),
        }
    }

    fn removals_of(&self, tenant: &TenantId) -> &AtomicU64 {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(tenant);
        let [index, ..] = hash.to_le_bytes();
        &self.removals[usize::from(index)]
    }

    fn is_fresh(&self, tenant: &TenantId, entry: &Entry) -> bool {
        let now = self.seen_now(tenant);
        let age = (now.at - entry.seen.at).to_std();
        entry.seen.removals == now.removals && age.is_ok_and(|age| age < MAX_UNCHECKED_AGE)
    }

    fn insert(&self, tenant: &TenantId, bundle: &Arc<Bundle>, seen: Seen) {
        let Some(cache) = &self.cache else { return };
        let parent = bundle.head.parent_session_id;
        let parent = parent.and_then(|parent| cache.get(&(tenant.clone(), parent)));
        let entry = Entry::new(Arc::clone(bundle), parent.as_ref(), seen);
        cache.insert((tenant.clone(), bundle.head.session_id), entry);
    }
}

impl Entry {
    /// Weighs a bundle. The parts that it shares with its parent were weighed for the parent.
    fn new(bundle: Arc<Bundle>, parent: Option<&Self>, seen: Seen) -> Self {
        let weight = Weight::of(&bundle, parent);
        Self { bundle, weight, seen }
    }
}

impl Weight {
    fn of(bundle: &Bundle, parent: Option<&Entry>) -> Self {
        let shared = |is_same: fn(&Bundle, &Bundle) -> bool| parent.filter(|parent| is_same(&parent.bundle, bundle));
        let environment = shared(|parent, bundle| parent.head.environment_hash == bundle.head.environment_hash);
        let context = shared(|parent, bundle| parent.head.context_hash == bundle.head.context_hash);
        // A bundle that was compacted since then contains fewer of its parent's messages.
        let history = shared(|parent, bundle| parent.history.first_index() == bundle.history.first_index());
        let (inherited, messages) =
            history.map_or((0, 0), |parent| (parent.bundle.history.len(), parent.weight.messages));
        let new = bundle.history.iter_from(inherited);
        let prefix = bundle.history.request_prefix();
        let texts = weight(&bundle.head.title) + weight(&bundle.head.preview);
        Self {
            head: ENTRY + size_of::<Bundle>() + weight(&bundle.head.metadata) + texts,
            environment: environment.map_or_else(|| weight(&bundle.environment), |parent| parent.weight.environment),
            context: context.map_or_else(|| weight(&bundle.context), |parent| parent.weight.context),
            messages: messages + new.map(|message| HISTORY_SLOT + weight(message)).sum::<usize>(),
            request_prefix: prefix.map_or(0, |prefix| prefix.bytes()),
        }
    }

    /// Returns the bytes of all parts.
    fn total(&self) -> u64 {
        (self.head + self.environment + self.context + self.messages + self.request_prefix) as u64
    }
}
