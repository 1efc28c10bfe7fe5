//! The team of a run: all agents that may be its subagents, at any level. They are resolved when
//! the run is planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::accepted::PinnedAgents;
use super::models::{check_prices, check_work, choose_models};
use crate::run::context::RunContext;
use crate::run::refusal::Refusal;
use crate::run::request::Allowance;
use agent::definition::{AgentDefinition, SubagentConfig};
use agent::model_calls::ModelChain;
use agent::state::ExecutionBudget;
use values::session::Hash;
use values::tenant::TenantId;

/// The most agents of a team.
const MAX_MEMBERS: usize = 64;

/// The agents that may be subagents, by name.
#[derive(Debug, Default)]
pub(in crate::run) struct Team(BTreeMap<String, Arc<Member>>);

/// An agent of a run.
#[derive(Debug)]
pub(in crate::run) struct Member {
    pub(in crate::run) agent: Arc<AgentDefinition>,
    /// The version of the definition.
    pub(in crate::run) agent_version: Hash,
    /// The models that it uses.
    pub(in crate::run) models: ModelChain,
}

/// A role in the team. Different paths through the team often lead to the same post, so there are
/// few posts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Post {
    /// The agent that fills it.
    agent: String,
    /// The parent agent.
    above: String,
    /// How many levels of subagents its ancestors allow below it.
    depth_left: u32,
    /// Whether the post or an ancestor has a cost limit.
    is_cost_limited: bool,
}

impl Team {
    /// Returns the versions of all members, by name.
    pub(in crate::run) fn versions(&self) -> BTreeMap<String, Hash> {
        let members = self.0.iter();
        members
            .map(|(name, member)| (name.clone(), member.agent_version))
            .collect()
    }

    /// Returns the member with the name.
    pub(in crate::run) fn member(&self, name: &str) -> Option<&Arc<Member>> {
        self.0.get(name)
    }
}

/// The search for all possible subagents of an agent.
pub(in crate::run) struct TeamSearch<'a> {
    pub(in crate::run) ctx: &'a RunContext,
    /// The tenant of the run.
    pub(in crate::run) tenant: &'a TenantId,
    /// The versions of agents with which the run was accepted; `None` for a new run.
    pub(in crate::run) pinned: Option<&'a PinnedAgents>,
    /// The limits of the run.
    pub(in crate::run) allowance: &'a Allowance<'a>,
}

impl TeamSearch<'_> {
    /// Finds all possible subagents of the agent. Each must exist, be allowed and have usable
    /// models. If the cost is limited, the models must have prices.
    pub(in crate::run) async fn gather(
        &self,
        lead: &AgentDefinition,
        budget: &ExecutionBudget,
    ) -> Result<Team, Refusal> {
        let mut team = Team::default();
        let mut filled = BTreeSet::new();
        let mut open: BTreeSet<Post> = posts_below(lead, lead.max_depth, budget.max_cost.is_some()).collect();
        while let Some(post) = open.pop_first() {
            if !filled.insert(post.clone()) {
                continue;
            }
            let member = self.find_member(&mut team, &post).await?;
            check_work(self.ctx, self.allowance, &member.agent, &member.models)?;
            let is_cost_limited = post.is_cost_limited || member.agent.budget.max_cost.is_some();
            if is_cost_limited {
                check_prices(&member.agent, &member.models)?;
            }
            let depth_left = post.depth_left.min(member.agent.max_depth);
            open.extend(posts_below(&member.agent, depth_left, is_cost_limited));
        }
        Ok(team)
    }

    async fn find_member(&self, team: &mut Team, post: &Post) -> Result<Arc<Member>, Refusal> {
        if let Some(member) = team.member(&post.agent) {
            return Ok(Arc::clone(member));
        }
        if team.0.len() == MAX_MEMBERS {
            return Err(Refusal::invalid(
                "agent",
                format!("more than {MAX_MEMBERS} agents may work below it"),
            ));
        }
        let agents = &self.ctx.agents;
        let found = match self.pinned.and_then(|pinned| pinned.team.get(&post.agent)) {
            Some(version) => agents.version(self.tenant, *version).await,
            None => agents.resolve(self.tenant, &post.agent).await,
        };
        let found = found.map_err(|refusal| match refusal {
            Refusal::UnknownAgent { name, .. } => Refusal::UnknownSubagent {
                name,
                above: post.above.clone(),
            },
            other => other,
        })?;
        let member = Arc::new(Member {
            models: choose_models(self.ctx, self.tenant, None, &found.definition)?,
            agent: found.definition,
            agent_version: found.version,
        });
        team.0.insert(post.agent.clone(), Arc::clone(&member));
        Ok(member)
    }
}

/// Returns the posts directly below an agent; none if no level is left.
fn posts_below(agent: &AgentDefinition, depth_left: u32, is_cost_limited: bool) -> impl Iterator<Item = Post> {
    let below = depth_left.checked_sub(1);
    let subagents = agent.subagents.iter().filter(move |_| below.is_some());
    subagents.map(move |subagent: &SubagentConfig| Post {
        agent: subagent.agent.clone(),
        above: agent.name.clone(),
        depth_left: below.unwrap_or_default(),
        is_cost_limited: is_cost_limited || subagent.budget.max_cost.is_some(),
    })
}
