//! Subagents in the journal of an earlier attempt: the progress of active ones, and the sessions of
//! ended ones.

use super::children::{ChildSession, Children};
use crate::agent::state::{AdditionGap, AgentState};
use crate::agent::{CallSeed, JournalEntry, Journals, Progress};
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::run::work::Work;
use crate::session::Hash;

/// A subagent, as read from its journal.
#[derive(Debug)]
pub(super) struct JournaledSubagent {
    /// The session that it will publish.
    pub(super) session_id: SessionId,
    /// The version of its definition.
    pub(super) agent_version: Hash,
    /// Its progress.
    pub(super) progress: Progress,
}

impl JournaledSubagent {
    /// Reads the entries of a scope. Returns `None` if the subagent has not reached its first step.
    pub(super) fn read(entries: Vec<JournalEntry>) -> Result<Option<Self>, AdditionGap> {
        let Some(JournalEntry::SubagentBegun {
            session_id,
            agent_id,
            agent_version,
        }) = entries.first().cloned()
        else {
            return Ok(None);
        };
        // The first addition contains the whole state except the agent id.
        let progress = Progress::of(AgentState::new(agent_id, Timestamp::UNIX_EPOCH), entries)?;
        Ok(progress.map(|progress| Self {
            session_id,
            agent_version,
            progress,
        }))
    }
}

/// Restores the sessions of an execution's ended subagents, as if they had run in this process.
pub(in crate::run) fn restore_children(above: &Work, progress: &Progress) -> Result<(), AdditionGap> {
    let Some(journal) = &above.journal else { return Ok(()) };
    restore_below(
        &*journal.journals,
        &above.call_seed,
        above.session_id,
        progress,
        &above.children,
    )
}

fn restore_below(
    journals: &dyn Journals,
    seed: &CallSeed,
    above: SessionId,
    progress: &Progress,
    children: &Children,
) -> Result<(), AdditionGap> {
    for (step_number, index, execution) in progress.ended_calls() {
        let subagent = execution.trace.subagent.as_ref();
        let Some(subagent) = subagent.filter(|subagent| subagent.status.has_session()) else {
            continue;
        };
        let scope = seed.key(step_number, index, &execution.call);
        let journaled = JournaledSubagent::read(journals.entries(&scope))?.ok_or(AdditionGap::Call { index })?;
        let below = Children::default();
        let seed = CallSeed::of_call(&scope);
        restore_below(journals, &seed, journaled.session_id, &journaled.progress, &below)?;
        let child = ChildSession {
            session_id: journaled.session_id,
            subagent_of: above,
            agent: subagent.agent.clone(),
            agent_version: journaled.agent_version,
            state: journaled.progress.state,
        };
        children.add(child, &below);
    }
    Ok(())
}
