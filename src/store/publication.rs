//! A commit made ready: validated, hashed and encoded, the same for every engine. No SQL.

use std::sync::Arc;

use chrono::SubsecRound as _;

use super::codec::{EncodeError, Payload, SEGMENT_VERSION, encode_context, encode_environment, encode_messages};
use super::error::StoreError;
use super::new_run::NewRun;
use super::traits::{Commit, ConflictPolicy};
use crate::ids::SessionId;
use crate::session::{
    BranchPosition, Bundle, BundleDraft, EnvironmentState, Hash, History, HistoryFault, RootHashInput, SessionHead,
    StoredContext, find_history_fault, hash_segment, root_hash,
};
use crate::tenant::TenantId;

/// What a commit is called in errors.
pub(crate) const OPERATION: &str = "commit session";

/// Everything that a commit writes.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) tenant: TenantId,
    /// The session; its position is where it goes if nothing is in the way.
    pub(crate) head: SessionHead,
    /// The session that it continues and where that one ends.
    pub(crate) parent: Option<(SessionId, BranchPosition)>,
    /// Where it goes if another session has continued the same one.
    pub(crate) fork: BranchPosition,
    pub(crate) conflict: ConflictPolicy,
    pub(crate) segment: NewSegment,
    /// Absent when it is the parent's.
    pub(crate) environment: Option<Payload>,
    /// Absent when it is the parent's.
    pub(crate) context: Option<Payload>,
    /// The metadata as JSON.
    pub(crate) metadata: String,
    pub(crate) run: Option<NewRun>,
    bundle: BundleStates,
}

/// The messages that the session adds.
#[derive(Debug)]
pub(crate) struct NewSegment {
    pub(crate) first_index: i64,
    pub(crate) message_count: i32,
    pub(crate) payload: Payload,
}

#[derive(Debug)]
struct BundleStates {
    environment: Arc<EnvironmentState>,
    context: Arc<StoredContext>,
    history: History,
}

/// Why a draft is refused.
#[derive(Debug, thiserror::Error)]
enum DraftFault {
    #[error("no provider would accept the history")]
    History(#[source] HistoryFault),
    #[error("the history does not begin with that of the session that it continues")]
    NotAContinuation,
    #[error("the record of the run names another run or session")]
    OtherRun,
    #[error("a count is too large to be stored")]
    TooLarge(#[source] std::num::TryFromIntError),
    #[error("the draft can't be encoded")]
    Encode(#[source] EncodeError),
    #[error("the draft can't be written as JSON")]
    Json(#[source] serde_json::Error),
}

impl Publication {
    /// Validates, hashes and encodes a commit.
    pub(crate) fn new(commit: &Commit) -> Result<Self, StoreError> {
        prepare(commit).map_err(|fault| StoreError::Failed {
            operation: OPERATION,
            source: fault.into(),
        })
    }

    /// Returns the bundle as it was published.
    pub(crate) fn into_bundle(self, position: BranchPosition) -> Bundle {
        Bundle {
            head: SessionHead { position, ..self.head },
            environment: self.bundle.environment,
            context: self.bundle.context,
            history: self.bundle.history,
        }
    }
}

fn prepare(commit: &Commit) -> Result<Publication, DraftFault> {
    let draft = &commit.draft;
    check_history(draft)?;
    check_run(commit)?;
    let parent = draft.parent.as_deref();
    let segment_bytes = encode_messages(draft.new_messages()).map_err(DraftFault::Encode)?;
    let segment_hash = hash_segment(&segment_bytes);
    let inherited = parent.map_or(0, |parent| parent.history.len());
    let segment = NewSegment {
        first_index: i64::try_from(inherited).map_err(DraftFault::TooLarge)?,
        message_count: i32::try_from(draft.history.len() - inherited).map_err(DraftFault::TooLarge)?,
        payload: Payload::encode(SEGMENT_VERSION, segment_bytes).map_err(DraftFault::Encode)?,
    };
    let (environment_hash, environment) = prepare_environment(draft)?;
    let (context_hash, context, stored_context) = prepare_context(draft)?;
    let fork = BranchPosition {
        branch_id: draft.new_branch_id,
        position: 0,
    };
    let head = SessionHead {
        session_id: draft.session_id,
        parent_session_id: parent.map(|parent| parent.head.session_id),
        run_id: draft.run_id,
        agent: draft.agent.clone(),
        agent_version: draft.agent_version,
        depth: draft.depth(),
        execution_count: draft.context.execution_count,
        message_count: draft.history.len() as u64,
        root_hash: prepare_root_hash(draft, environment_hash, context_hash, segment_hash)?,
        environment_hash,
        context_hash,
        segment_hash,
        metadata: draft.context.metadata.clone(),
        created_at: draft.context.updated_at.trunc_subsecs(6),
        position: parent.map_or(fork, |parent| next_position(parent.head.position)),
    };
    let run = commit.run.as_ref().map(|(record, steps)| NewRun::new(record, steps));
    Ok(Publication {
        tenant: commit.tenant.clone(),
        metadata: serde_json::to_string(&head.metadata).map_err(DraftFault::Json)?,
        head,
        parent: parent.map(|parent| (parent.head.session_id, parent.head.position)),
        fork,
        conflict: commit.conflict,
        segment,
        environment,
        context,
        run: run.transpose().map_err(DraftFault::Encode)?,
        bundle: BundleStates {
            environment: Arc::clone(&draft.environment),
            context: stored_context,
            history: draft.history.clone(),
        },
    })
}

/// The parent's history was checked when it was committed, and it left no call open.
fn check_history(draft: &BundleDraft) -> Result<(), DraftFault> {
    if let Some(parent) = &draft.parent
        && let Some(last) = parent.history.len().checked_sub(1)
        && draft.history.get(last) != parent.history.get(last)
    {
        return Err(DraftFault::NotAContinuation);
    }
    let fault = find_history_fault(draft.new_messages().map(AsRef::as_ref));
    fault.map_or(Ok(()), |fault| Err(DraftFault::History(fault)))
}

fn check_run(commit: &Commit) -> Result<(), DraftFault> {
    let Some((record, _)) = &commit.run else {
        return Ok(());
    };
    let named = (Some(record.summary.run_id), record.summary.session_id);
    if named == (commit.draft.run_id, commit.draft.session_id) {
        Ok(())
    } else {
        Err(DraftFault::OtherRun)
    }
}

/// Nothing is encoded when the environment is the parent's.
fn prepare_environment(draft: &BundleDraft) -> Result<(Hash, Option<Payload>), DraftFault> {
    if let Some(parent) = &draft.parent
        && (Arc::ptr_eq(&parent.environment, &draft.environment) || parent.environment == draft.environment)
    {
        return Ok((parent.head.environment_hash, None));
    }
    let (hash, payload) = encode_environment(&draft.environment).map_err(DraftFault::Encode)?;
    Ok((hash, Some(payload)))
}

/// Nothing is encoded when the context is the parent's.
fn prepare_context(draft: &BundleDraft) -> Result<(Hash, Option<Payload>, Arc<StoredContext>), DraftFault> {
    if let Some(parent) = &draft.parent
        && *parent.context == draft.context.stored
    {
        return Ok((parent.head.context_hash, None, Arc::clone(&parent.context)));
    }
    let (hash, payload) = encode_context(&draft.context.stored).map_err(DraftFault::Encode)?;
    Ok((hash, Some(payload), Arc::new(draft.context.stored.clone())))
}

fn prepare_root_hash(draft: &BundleDraft, environment: Hash, context: Hash, segment: Hash) -> Result<Hash, DraftFault> {
    let input = RootHashInput {
        session_id: draft.session_id,
        parent: draft.parent.as_ref().map(|parent| parent.head.root_hash),
        environment,
        context,
        segment,
        agent_version: draft.agent_version,
        agent: &draft.agent,
        metadata: &draft.context.metadata,
        execution_count: draft.context.execution_count,
        message_count: draft.history.len() as u64,
        created_at: draft.context.updated_at,
    };
    root_hash(&input).map_err(DraftFault::Json)
}

fn next_position(position: BranchPosition) -> BranchPosition {
    BranchPosition {
        position: position.position.saturating_add(1),
        ..position
    }
}
