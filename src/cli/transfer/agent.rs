//! The definitions of agents in a file of sessions: all versions that its sessions name, and those
//! with which they are continued.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::cli::output::print_note;
use crate::cli::requester::requester;
use crate::run::agents::AgentDirectory;
use agent::definition::AgentDefinition;
use store::Store;
use store::agents::AgentRecord;
use values::causes::with_causes;
use values::clock::{Clock as _, SystemClock};
use values::json::canonical_bytes;
use values::session::{Hash, SessionHead, hash_definition};
use values::tenant::TenantId;

/// A version of an agent's definition.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortableAgent {
    version: Hash,
    /// Whether runs use this version.
    is_current: bool,
    definition: Arc<AgentDefinition>,
}

/// Returns the definitions that sessions name, and the current definitions with which they are
/// continued, also of subagents at any depth.
pub(super) async fn agents_of(
    store: &dyn Store,
    agents: &AgentDirectory,
    tenant: &TenantId,
    heads: &[SessionHead],
) -> anyhow::Result<Vec<PortableAgent>> {
    let mut names: Vec<String> = heads.iter().map(|head| head.agent.clone()).collect();
    let mut versions: BTreeSet<Hash> = heads.iter().filter_map(|head| head.agent_version).collect();
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    while let Some(name) = names.pop() {
        if !known.insert(name.clone()) {
            continue;
        }
        let Some(agent) = agents.lookup(tenant, &name).await? else {
            print_note(format_args!("the agent {name} is left out: there is none of this name"))?;
            continue;
        };
        names.extend(agent.definition.subagents.iter().map(|subagent| subagent.agent.clone()));
        versions.remove(&agent.version);
        found.push(PortableAgent::new(agent, true));
    }
    for version in versions {
        let agent = store.agent_version_lookup(tenant, version).await?;
        found.extend(agent.map(|agent| PortableAgent::new(agent, false)));
    }
    found.sort_by_key(|agent| (!agent.is_current, agent.definition.name.clone(), agent.version));
    Ok(found)
}

impl PortableAgent {
    fn new(agent: AgentRecord, is_current: bool) -> Self {
        Self {
            version: agent.version,
            is_current,
            definition: agent.definition,
        }
    }

    /// Stores the version. Runs use it if there is no agent of this name yet.
    pub(super) async fn store(
        self,
        store: &dyn Store,
        agents: &AgentDirectory,
        tenant: &TenantId,
    ) -> anyhow::Result<()> {
        let (name, version) = (self.definition.name.clone(), self.version);
        let actual = hash_definition(&canonical_bytes(&self.definition)?);
        ensure!(actual == version, "the agent {name} differs from its hash");
        let agent = AgentRecord {
            definition: Arc::clone(&self.definition),
            version,
            created_at: SystemClock.now(),
        };
        store.agent_version_put(tenant, &agent).await?;
        if !self.is_current {
            return Ok(());
        }
        let note = match agents.lookup(tenant, &name).await? {
            Some(here) if here.version == version => return Ok(()),
            Some(_) => format!("the agent {name} stays as it is here, which differs from the file"),
            None => match agents
                .put(tenant, AgentDefinition::clone(&self.definition), &requester())
                .await
            {
                Ok(_) => format!("the agent {name} is new"),
                Err(refusal) => format!("the agent {name} can't be used here: {}", with_causes(&refusal)),
            },
        };
        Ok(print_note(format_args!("{note}"))?)
    }
}
