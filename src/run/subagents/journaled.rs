//! Subagents in the journal of an earlier attempt: the progress of active ones, and the sessions of
//! ended ones.

use std::sync::Arc;

use crate::run::work::{Children, SubagentSession, Work};
use agent::CallSeed;
use agent::journal::{JournalEntry, Journals, Progress};
use agent::state::{AdditionGap, AgentState};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::session::{EnvironmentState, Hash};

/// A subagent, as read from its journal.
#[derive(Debug)]
pub(super) struct JournaledSubagent {
    /// The session that it will publish.
    pub(super) session_id: SessionId,
    /// The version of the definition.
    pub(super) agent_version: Hash,
    /// The environment with which it began; `None` if it shares the environment of its parent
    /// agent.
    pub(super) begun_with: Option<Box<EnvironmentState>>,
    pub(super) progress: Progress,
}

impl JournaledSubagent {
    /// Reads the entries of a scope. Returns `None` if the subagent has not reached its first step.
    pub(super) fn read(entries: Vec<JournalEntry>) -> Result<Option<Self>, AdditionGap> {
        let Some(JournalEntry::SubagentBegun {
            session_id,
            agent_id,
            agent_version,
            environment,
        }) = entries.first().cloned()
        else {
            return Ok(None);
        };
        // The first addition contains the whole state except the agent id.
        let progress = Progress::of(AgentState::new(agent_id, Timestamp::UNIX_EPOCH), entries)?;
        Ok(progress.map(|progress| Self {
            session_id,
            agent_version,
            begun_with: environment,
            progress,
        }))
    }

    /// Returns the environment that it has reached; `None` if it shares the environment of its
    /// parent agent.
    pub(super) fn environment(&self) -> Option<&EnvironmentState> {
        let reached = self.progress.environment.as_ref().map(|persisted| &persisted.state);
        reached.or(self.begun_with.as_ref()).map(AsRef::as_ref)
    }
}

/// Restores the sessions of an execution's ended subagents, as if they had run in this process.
pub(in crate::run) fn restore_children(above: &Work, progress: &Progress) -> Result<(), AdditionGap> {
    let Some(journal) = &above.journal else { return Ok(()) };
    let above_all = Parent {
        session_id: above.session_id,
        environment: Arc::new(above.environment.stored_state()),
        seed: &above.call_seed,
    };
    restore_below(&*journal.journals, &above_all, progress, &above.children)
}

/// The parent agent of restored subagents.
struct Parent<'a> {
    session_id: SessionId,
    environment: Arc<EnvironmentState>,
    seed: &'a CallSeed,
}

fn restore_below(
    journals: &dyn Journals,
    above: &Parent<'_>,
    progress: &Progress,
    children: &Children,
) -> Result<(), AdditionGap> {
    for (step_number, index, execution) in progress.ended_calls() {
        let subagent = execution.trace.subagent.as_ref();
        let Some(subagent) = subagent.filter(|subagent| subagent.status.has_session()) else {
            continue;
        };
        let scope = above.seed.key(step_number, index, &execution.call);
        let journaled = JournaledSubagent::read(journals.entries(&scope))?.ok_or(AdditionGap::Call { index })?;
        let below = Children::default();
        let environment = journaled.environment().cloned();
        let environment = environment.map_or_else(|| Arc::clone(&above.environment), Arc::new);
        let parent = Parent {
            session_id: journaled.session_id,
            environment: Arc::clone(&environment),
            seed: &CallSeed::of_call(&scope),
        };
        restore_below(journals, &parent, &journaled.progress, &below)?;
        let child = SubagentSession {
            session_id: journaled.session_id,
            subagent_of: above.session_id,
            agent: subagent.agent.clone(),
            agent_version: journaled.agent_version,
            environment,
            state: journaled.progress.state,
        };
        children.add(child, &below);
    }
    Ok(())
}
