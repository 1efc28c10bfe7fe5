//! Checks a draft before it is published. Contains no SQL: the engines make the checks that need
//! the database.

use std::collections::BTreeMap;

use super::codec::EncodeError;
use super::sessions::Commit;
use values::ids::SessionId;
use values::session::{BundleDraft, CoverageFault, HistoryFault, find_history_fault, find_history_start};

/// The reason why a draft is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum DraftFault {
    #[error("no provider would accept the history")]
    History(#[source] HistoryFault),
    #[error("the history does not begin with that of the session that it continues")]
    NotAContinuation,
    #[error("the history does not hold the messages that running it needs")]
    Incomplete,
    #[error("a summary can't stand for what it covers")]
    Coverage(#[source] CoverageFault),
    #[error("the record of the run names another run or session")]
    OtherRun,
    #[error("a session with a subagent's mark does not belong to a subagent of this run")]
    StrayChild,
    #[error("a count is too large to be stored")]
    TooLarge(#[source] std::num::TryFromIntError),
    #[error("the draft can't be encoded")]
    Encode(#[source] EncodeError),
    #[error("the draft can't be written as JSON")]
    Json(#[source] serde_json::Error),
}

/// Checks the new messages. Returns the index of the first message needed to run the session.
///
/// The parent's history was checked when it was committed, and it ends without an open tool call.
pub(super) fn check_history(draft: &BundleDraft) -> Result<usize, DraftFault> {
    if let Some(parent) = &draft.parent
        && let Some(last) = parent.history.len().checked_sub(1)
        && draft.history.get(last) != parent.history.get(last)
    {
        return Err(DraftFault::NotAContinuation);
    }
    let inherited_start = draft.parent.as_ref().map_or(0, |parent| parent.head.history_start);
    if draft.history.first_index() as u64 > inherited_start {
        return Err(DraftFault::Incomplete);
    }
    if let Some(fault) = find_history_fault(draft.new_messages().map(AsRef::as_ref)) {
        return Err(DraftFault::History(fault));
    }
    let start = find_history_start(&draft.history, draft.inherited(), inherited_start);
    usize::try_from(start.map_err(DraftFault::Coverage)?).map_err(DraftFault::TooLarge)
}

/// Checks that the record belongs to the run that publishes the sessions.
pub(super) fn check_run(commit: &Commit) -> Result<(), DraftFault> {
    let draft = &commit.draft;
    let is_other = |child: &BundleDraft| child.run_id != draft.run_id;
    let named = commit.run.as_ref().map(|end| &end.record.summary);
    let is_own = named.is_none_or(|run| (Some(run.run_id), run.session_id) == (draft.run_id, draft.session_id));
    if is_own && !commit.children.iter().any(is_other) {
        Ok(())
    } else {
        Err(DraftFault::OtherRun)
    }
}

/// Checks that each child descends from the run's own session through a chain of subagents. The
/// run's own session must not be a subagent's.
pub(super) fn check_children(commit: &Commit) -> Result<(), DraftFault> {
    let own = commit.draft.session_id;
    let above: BTreeMap<SessionId, Option<SessionId>> = commit
        .children
        .iter()
        .map(|child| (child.session_id, child.subagent_of))
        .collect();
    let leads_to_own = |child: &BundleDraft| {
        let mut starter = child.subagent_of;
        // A path longer than the number of children is a cycle.
        for _ in &commit.children {
            if starter == Some(own) {
                return true;
            }
            starter = starter.and_then(|session_id| above.get(&session_id).copied().flatten());
        }
        false
    };
    // A session that is carried over from another store may be a subagent's.
    let may_be_child = commit.run.is_none() && commit.draft.run_id.is_some();
    if (commit.draft.subagent_of.is_none() || may_be_child) && commit.children.iter().all(leads_to_own) {
        Ok(())
    } else {
        Err(DraftFault::StrayChild)
    }
}
