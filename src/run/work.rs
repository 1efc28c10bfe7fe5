//! The work of one execution, that of the run's own agent or that of a subagent: what its loop is made of and what bounds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::subagents::{Children, Team};
use crate::agent::drivers::ModelChain;
use crate::agent::{AgentDefinition, EventSink, ExecutionControl, HookConfig};
use crate::ids::SessionId;
use crate::json::Value;
use crate::session::Hash;

/// An execution that is to begin.
#[derive(Debug)]
pub(super) struct Work {
    /// How the agent works.
    pub(super) agent: Arc<AgentDefinition>,
    /// The version of the definition.
    pub(super) agent_version: Hash,
    /// The models that it asks.
    pub(super) models: ModelChain,
    /// The names of the tools that it is given.
    pub(super) tools: Vec<String>,
    /// The hooks of the agents above it, and its own.
    pub(super) hooks: Vec<HookConfig>,
    /// The session that it makes.
    pub(super) session_id: SessionId,
    /// How many levels of agents may be below it.
    pub(super) depth_left: u32,
    /// Bounds it.
    pub(super) control: Arc<ExecutionControl>,
    /// Hears of everything.
    pub(super) events: Arc<dyn EventSink>,
    /// The environment's variables.
    pub(super) variables: Arc<BTreeMap<String, Value>>,
    /// The agents that may work below it.
    pub(super) team: Arc<Team>,
    /// The sessions that agents below it have made.
    pub(super) children: Children,
}
