//! The directory of agents: agents that callers stored, and agents of configuration files, which
//! every tenant can use. A name with a slash is that of a model: the agent that has nothing but it.
//!
//! A stored definition is cached for a tenth of a second. A change through this process is
//! effective at once, also beside reads that began before it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::checks::{AgentChecks, ConfiguredAgent};
use crate::run::refusal::{AgentFilesError, Refusal, UnusableAgent};
use agent::definition::AgentDefinition;
use agent::ports::{ModelLookupError, RunWebhook};
use store::agents::{AgentList, AgentPage, AgentRecord};
use store::audit::Requester;
use store::{Store, StoreError};
use tasks::off_thread::off_thread;
use values::clock::Clock;
use values::json::{canonical_bytes, count_reaching, json_length, weight};
use values::model_ref::ModelRef;
use values::session::{Hash, hash_definition};
use values::spelling::nearest;
use values::tenant::TenantId;

/// How long a replica may still use a definition that another replica has replaced.
const MAX_AGE: Duration = Duration::from_millis(100);
/// The most bytes of definitions in memory.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// The bytes that an entry takes in addition to its definition.
const ENTRY: usize = 512;
/// The most versions that the cache remembers as stored.
const MAX_STORED: u64 = 10_000;

/// A version still counts as one of a configuration file during this number of reads of the files.
/// A request that looked it up before may still use it.
const KNOWN_READS: u64 = 16;

/// The most agents from which a suggestion is chosen.
const MAX_SUGGESTIONS: u32 = 200;
/// The most bytes of the definitions of these agents, as JSON.
const MAX_SUGGESTION_BYTES: usize = 1 << 20;

/// Reads the agents of configuration files, at the start and at each reload.
pub trait AgentSource: fmt::Debug + Send + Sync {
    /// Returns all agents, or the error of one of them.
    fn read(&self) -> Result<Vec<ConfiguredAgent>, Box<dyn Error + Send + Sync>>;
}

/// The agents of configuration files by name.
pub type Configured = BTreeMap<String, AgentRecord>;

/// Finds and stores agents.
#[derive(Debug)]
pub struct AgentDirectory {
    store: Arc<dyn Store>,
    checks: Arc<AgentChecks>,
    clock: Arc<dyn Clock>,
    source: Box<dyn AgentSource>,
    configured: RwLock<Arc<Configured>>,
    /// The versions of agents in configuration files, now or recently, with the number of the last
    /// read that found them.
    configured_versions: RwLock<BTreeMap<Hash, u64>>,
    /// The number of the last read. Locked while files are read, so that the result of the last
    /// read stays.
    reading: Mutex<u64>,
    cache: moka::sync::Cache<(TenantId, String), Option<AgentRecord>>,
    /// The number of changes through this process. A definition that was read before the last one
    /// is not cached.
    changes: Mutex<u64>,
    /// Versions of configured agents that this process has stored.
    stored_versions: moka::sync::Cache<(TenantId, Hash), ()>,
}

impl AgentDirectory {
    /// Creates a directory with the agents of configuration files. Fails if one of them can't run.
    pub fn new(
        store: Arc<dyn Store>,
        checks: AgentChecks,
        clock: Arc<dyn Clock>,
        source: Box<dyn AgentSource>,
    ) -> Result<Self, AgentFilesError> {
        let cache = moka::sync::Cache::builder()
            .max_capacity(MAX_CACHED_BYTES)
            .weigher(|_, found: &Option<AgentRecord>| {
                let bytes = found.as_ref().map_or(0, |agent| weight(&agent.definition));
                u32::try_from(bytes + ENTRY).unwrap_or(u32::MAX)
            })
            .time_to_live(MAX_AGE)
            .build();
        let directory = Self {
            store,
            checks: Arc::new(checks),
            clock,
            source,
            configured: RwLock::default(),
            configured_versions: RwLock::default(),
            reading: Mutex::default(),
            cache,
            changes: Mutex::default(),
            stored_versions: moka::sync::Cache::new(MAX_STORED),
        };
        directory.read()?;
        Ok(directory)
    }

    /// Returns the agents of configuration files, by name.
    pub fn configured(&self) -> Arc<BTreeMap<String, AgentRecord>> {
        Arc::clone(&self.configured.read())
    }

    /// Reads the agents of configuration files again and returns them. If one is invalid, none
    /// changes. Active runs continue with the definitions with which they began.
    pub async fn reload(self: &Arc<Self>) -> Result<Arc<BTreeMap<String, AgentRecord>>, AgentFilesError> {
        let directory = Arc::clone(self);
        // The operator has no tenant, so the anonymous one stands for it.
        off_thread(&TenantId::anonymous(), move || directory.read()).await?;
        let mut changes = self.changes.lock();
        *changes += 1;
        self.cache.invalidate_all();
        drop(changes);
        Ok(self.configured())
    }

    /// Returns the agents of configuration files that lack an API key, each with the error.
    pub fn keyless(&self) -> Vec<(String, ModelLookupError)> {
        let configured = self.configured();
        let lacking = configured.iter().flat_map(|(name, agent)| {
            let missing = self.checks.missing_keys(&agent.definition);
            missing.into_iter().map(|error| (name.clone(), error))
        });
        lacking.collect()
    }

    fn read(&self) -> Result<(), AgentFilesError> {
        let mut reading = self.reading.lock();
        let before = self.configured();
        let mut configured = Configured::new();
        for agent in self.source.read().map_err(AgentFilesError::Read)? {
            self.checks.check_configured(&agent)?;
            let ConfiguredAgent { location, definition } = agent;
            let name = definition.name.clone();
            let mut record = self.record(definition).map_err(|source| UnusableAgent {
                location,
                name: name.clone(),
                source,
            })?;
            if let Some(known) = before.get(&name).filter(|known| known.version == record.version) {
                record = known.clone();
            }
            configured.insert(name, record);
        }
        *reading += 1;
        let mut versions = self.configured_versions.write();
        versions.extend(configured.values().map(|record| (record.version, *reading)));
        versions.retain(|_, read| *read + KNOWN_READS > *reading);
        drop(versions);
        *self.configured.write() = Arc::new(configured);
        Ok(())
    }

    /// Returns whether a configuration file contains the definition, or did a short time ago.
    pub fn is_configured(&self, agent: &AgentRecord) -> bool {
        self.configured_versions.read().contains_key(&agent.version)
    }

    /// Returns the agent's current version; a stored one hides a configured one of the same name.
    pub async fn lookup(&self, tenant: &TenantId, name: &str) -> Result<Option<AgentRecord>, StoreError> {
        let key = (tenant.clone(), name.to_owned());
        if let Some(cached) = self.cache.get(&key) {
            return Ok(cached);
        }
        let before = *self.changes.lock();
        let stored = self.store.agent_lookup(tenant, name).await?;
        let found = stored.or_else(|| self.configured().get(name).cloned());
        let changes = self.changes.lock();
        if *changes == before {
            self.cache.insert(key, found.clone());
        }
        drop(changes);
        Ok(found)
    }

    /// Lists current versions by name.
    pub async fn list(&self, tenant: &TenantId, page: &AgentPage<String>) -> Result<AgentList, StoreError> {
        let AgentList { mut agents, is_last } = self.store.agent_list(tenant, page).await?;
        // An agent after the last stored agent belongs to a later page.
        let end = agents.last().map(|last| last.definition.name.clone());
        let end = end.filter(|_| !is_last);
        let on_page = |name: &String| {
            page.after.as_ref().is_none_or(|after| name > after) && end.as_ref().is_none_or(|end| name <= end)
        };
        agents.extend(
            self.configured()
                .iter()
                .filter(|(name, _)| on_page(name))
                .map(|(_, record)| record.clone()),
        );
        // The sort is stable, so of two agents with the same name, the stored one stays.
        agents.sort_by(|left, right| left.definition.name.cmp(&right.definition.name));
        agents.dedup_by(|right, left| right.definition.name == left.definition.name);
        let in_limit = agents.iter().take(page.limit as usize);
        let fitting = count_reaching(page.bytes, in_limit.map(|agent| json_length(&*agent.definition)));
        let is_last = is_last && fitting == agents.len();
        agents.truncate(fitting);
        Ok(AgentList { agents, is_last })
    }

    /// Lists the versions of a name that the tenant has stored, or that its runs have used, the
    /// newest first.
    pub async fn versions(
        &self,
        tenant: &TenantId,
        name: &str,
        page: &AgentPage<Hash>,
    ) -> Result<AgentList, StoreError> {
        self.store.agent_version_list(tenant, name, page).await
    }

    /// Returns the name of a similar agent that the tenant may have meant, among the agents that
    /// the caller may see.
    pub async fn similar(
        &self,
        tenant: &TenantId,
        name: &str,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, StoreError> {
        let page = AgentPage {
            after: None,
            limit: MAX_SUGGESTIONS,
            bytes: MAX_SUGGESTION_BYTES,
        };
        let list = self.list(tenant, &page).await?;
        let names = list.agents.iter().map(|agent| agent.definition.name.as_str());
        Ok(nearest(name, names.filter(|name| may_see(name))).map(str::to_owned))
    }

    /// Checks the webhook that a tenant requests.
    pub(in crate::run) fn check_webhook(&self, tenant: &TenantId, webhook: Option<&RunWebhook>) -> Result<(), Refusal> {
        self.checks.check_webhook(webhook, Some(tenant))
    }

    /// Makes the definition the current version of its name.
    pub async fn put(
        &self,
        tenant: &TenantId,
        definition: AgentDefinition,
        by: &Requester,
    ) -> Result<AgentRecord, Refusal> {
        let (checks, owner) = (Arc::clone(&self.checks), tenant.clone());
        let (definition, checked) = off_thread(tenant, move || {
            let checked = checks.check_of_tenant(&definition, &owner);
            (definition, checked)
        })
        .await;
        checked?;
        let record = self.store.agent_put(tenant, &definition, by).await?;
        self.forget(tenant, definition.name);
        Ok(record)
    }

    /// Deletes the name. Returns whether it existed.
    pub async fn delete(&self, tenant: &TenantId, name: &str, by: &Requester) -> Result<bool, Refusal> {
        let deleted = self.store.agent_delete(tenant, name, by).await?;
        self.forget(tenant, name.to_owned());
        if !deleted && self.configured().contains_key(name) {
            return Err(Refusal::AgentIsConfigured { name: name.to_owned() });
        }
        Ok(deleted)
    }

    fn forget(&self, tenant: &TenantId, name: String) {
        let mut changes = self.changes.lock();
        *changes += 1;
        self.cache.invalidate(&(tenant.clone(), name));
    }

    /// Returns the agent for a run. Stores its version, so that the run's record always has its
    /// definition.
    pub(in crate::run) async fn resolve(&self, tenant: &TenantId, name: &str) -> Result<AgentRecord, Refusal> {
        // No agent has a slash in its name.
        let model = name.parse::<ModelRef>().ok();
        let found = match &model {
            Some(model) => {
                self.checks.models.check(model)?;
                Some(self.record(AgentDefinition::of_model(model.clone()))?)
            }
            None => self.lookup(tenant, name).await?,
        };
        let record = found.ok_or_else(|| Refusal::UnknownAgent {
            name: name.to_owned(),
            similar: None,
        })?;
        let key = (tenant.clone(), record.version);
        let is_stored = model.is_none() && !self.is_configured(&record);
        if !is_stored && !self.stored_versions.contains_key(&key) {
            self.store.agent_version_put(tenant, &record).await?;
            self.stored_versions.insert(key, ());
        }
        Ok(record)
    }

    /// Returns the version of an agent with which a run was accepted.
    pub(in crate::run) async fn version(&self, tenant: &TenantId, version: Hash) -> Result<AgentRecord, Refusal> {
        let configured = self.configured();
        if let Some(agent) = configured.values().find(|agent| agent.version == version) {
            return Ok(agent.clone());
        }
        let stored = self.store.agent_version_lookup(tenant, version).await?;
        stored.ok_or_else(|| Refusal::UnknownAgent {
            name: version.to_string(),
            similar: None,
        })
    }

    fn record(&self, definition: AgentDefinition) -> Result<AgentRecord, Refusal> {
        let bytes = canonical_bytes(&definition).map_err(|error| Refusal::invalid("metadata", error.to_string()))?;
        Ok(AgentRecord {
            version: hash_definition(&bytes),
            definition: Arc::new(definition),
            created_at: self.clock.now(),
        })
    }
}
