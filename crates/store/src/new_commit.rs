//! A validated, hashed and encoded commit, the same for both engines. Contains no SQL.

use std::sync::Arc;

use chrono::SubsecRound as _;

use super::codec::{Payload, SEGMENT_VERSION, encode_context, encode_environment, encode_messages};
use super::draft::{DraftFault, check_children, check_history, check_run};
use super::error::StoreError;
use super::new_end::{NewEnd, end_weight};
use super::rows::NewEnvironment;
use super::sessions::{Commit, Committed, ConflictPolicy, ThreadMove};
use agent::record::ThreadName;
use tasks::off_thread::by_size_of;
use values::ids::SessionId;
use values::json::weight;
use values::message::Message;
use values::session::{
    BranchPosition, Bundle, BundleDraft, EnvironmentState, Hash, History, SessionHead, StoredContext, hash_segment,
    preview_of, title_of,
};
use values::tenant::TenantId;

/// The operation's name in errors.
pub(crate) const OPERATION: &str = "commit session";
/// How many times the bytes of an output may be read to find it in its session.
const MOST_READ_FOR_OUTPUT: usize = 8;

/// Everything that a commit writes.
#[derive(Debug)]
pub(crate) struct NewCommit {
    /// The run's own session.
    pub(crate) own: NewSession,
    /// The sessions of its subagents.
    pub(crate) children: Vec<NewSession>,
    /// The end of the run.
    pub(crate) end: Option<NewEnd>,
    /// The thread that it moves to its own session.
    pub(crate) thread: Option<ThreadMove>,
    /// Another session whose environment it uses.
    pub(crate) environment_from: Option<SessionId>,
}

/// The positions of the sessions of a commit.
#[derive(Debug)]
pub(crate) struct Positions {
    /// The position of the run's own session.
    pub(crate) own: BranchPosition,
    /// The positions of the subagents' sessions, in their order.
    pub(crate) children: Vec<BranchPosition>,
}

impl Positions {
    /// Returns the positions of a commit of one session that moves no thread.
    pub(crate) fn alone(own: BranchPosition) -> Self {
        Self {
            own,
            children: Vec::new(),
        }
    }
}

/// A session to insert.
#[derive(Debug)]
pub(crate) struct NewSession {
    pub(crate) tenant: TenantId,
    /// The session. Without a conflict, it gets the position in this head.
    pub(crate) head: SessionHead,
    /// The session that it continues, and the position of that session.
    pub(crate) parent: Option<(SessionId, BranchPosition)>,
    /// The position that it gets if another session has already continued the parent.
    pub(crate) fork: BranchPosition,
    pub(crate) conflict: ConflictPolicy,
    pub(crate) segment: NewSegment,
    /// Absent when it is the parent's.
    pub(crate) environment: Option<NewEnvironment>,
    /// Absent when it is the parent's.
    pub(crate) context: Option<Payload>,
    /// The metadata as JSON.
    pub(crate) metadata: String,
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

impl NewCommit {
    /// Validates, hashes and encodes a commit, on another thread if it is large.
    pub(crate) async fn make(commit: &Commit) -> Result<Self, StoreError> {
        by_size_of(&commit.tenant, commit_weight(commit), commit, Self::new).await
    }

    fn new(commit: &Commit) -> Result<Self, StoreError> {
        prepare_all(commit).map_err(StoreError::failed(OPERATION))
    }

    /// Returns whether it writes only one session and a [plain](NewEnd::is_plain) end of its run.
    pub(crate) fn is_plain(&self) -> bool {
        let is_plain_end = self.end.as_ref().is_none_or(NewEnd::is_plain);
        is_plain_end && self.children.is_empty() && self.thread.is_none() && self.environment_from.is_none()
    }

    /// Returns the bundles of the committed sessions.
    pub(crate) fn into_committed(self, positions: Positions) -> Committed {
        let children = self.children.into_iter().zip(positions.children);
        Committed {
            session: self.own.into_bundle(positions.own),
            children: children.map(|(child, position)| child.into_bundle(position)).collect(),
        }
    }
}

impl NewSession {
    /// Returns about how many bytes it sends to the database.
    pub(crate) fn bytes(&self) -> usize {
        let environment = self.environment.as_ref().map(|environment| &environment.payload);
        let payloads = [Some(&self.segment.payload), environment, self.context.as_ref()];
        let payloads = payloads.into_iter().flatten().map(|payload| payload.bytes.len());
        self.metadata.len() + payloads.sum::<usize>()
    }

    fn into_bundle(self, position: BranchPosition) -> Bundle {
        Bundle {
            head: SessionHead { position, ..self.head },
            environment: self.bundle.environment,
            context: self.bundle.context,
            history: self.bundle.history,
        }
    }
}

/// Estimates the memory of the data that a commit checks, hashes and encodes, in bytes.
pub(super) fn commit_weight(commit: &Commit) -> u64 {
    let drafts: usize = commit.drafts().map(draft_weight).sum();
    drafts as u64 + commit.run.as_ref().map_or(0, end_weight)
}

fn draft_weight(draft: &BundleDraft) -> usize {
    let parent = draft.parent.as_deref();
    // States that equal the parent's are neither hashed nor encoded.
    let environment = parent.is_none_or(|parent| parent.environment != draft.environment);
    let context = parent.is_none_or(|parent| *parent.context != draft.context.stored);
    let environment = if environment { weight(&draft.environment) } else { 0 };
    let context = if context { weight(&draft.context.stored) } else { 0 };
    // The messages after a new summary are counted again.
    let summaries = draft.new_messages().filter_map(|message| message.tags.covers);
    let left = summaries.map(|covers| usize::try_from(covers.to).unwrap_or(usize::MAX));
    let first = left.min().map_or(draft.inherited(), |left| left.min(draft.inherited()));
    let messages = messages_weight(draft.history.iter_from(first));
    environment + context + weight(&draft.context.metadata) + messages
}

fn messages_weight<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> usize {
    messages.into_iter().map(weight).sum()
}

/// Returns the root hash that a draft will have. Checks the draft as a commit does.
pub(super) fn root_hash_of(draft: &BundleDraft) -> Result<Hash, StoreError> {
    let session = prepare(&TenantId::anonymous(), draft, ConflictPolicy::Fork);
    let session = session.map_err(StoreError::failed(OPERATION))?;
    Ok(session.head.root_hash)
}

fn prepare_all(commit: &Commit) -> Result<NewCommit, DraftFault> {
    check_run(commit)?;
    check_children(commit)?;
    let end = commit.run.as_ref();
    let end = end.map(|end| NewEnd::new(end, output_in_session(&commit.draft, &end.record.output)));
    let mut end = end.transpose().map_err(DraftFault::Encode)?;
    if let Some(end) = &mut end {
        end.run.row.thread_moved = commit.thread.is_some().then_some(true);
    }
    // A subagent's session never conflicts: if another session has continued its parent, it opens a
    // branch.
    let outcome = commit.run.as_ref();
    let outcome = outcome.and_then(|end| end.record.summary.status.outcome());
    let prepared = |draft, conflict| {
        let mut session = prepare(&commit.tenant, draft, conflict)?;
        session.head.run_status = outcome.or(session.head.run_status);
        Ok::<_, DraftFault>(session)
    };
    let children = commit.children.iter();
    let children = children.map(|child| prepared(child, ConflictPolicy::Fork));
    let mut own = prepared(&commit.draft, commit.conflict)?;
    own.head.thread = thread_of(commit).map(ToString::to_string);
    Ok(NewCommit {
        own,
        children: children.collect::<Result<_, _>>()?,
        end,
        thread: commit.thread.clone(),
        environment_from: commit.environment_from,
    })
}

/// Returns the thread that a commit moves, or on which its run worked in a fork.
fn thread_of(commit: &Commit) -> Option<&ThreadName> {
    let of_run = commit.run.as_ref().and_then(|end| end.record.summary.thread.as_ref());
    let moved = commit.thread.as_ref().map(|thread| &thread.name);
    moved.or(of_run)
}

/// Returns how many of the last messages of a session are the output of its run, if the record of
/// the run is to refer to them.
///
/// Reading the record then reads all new messages of the session. If they are much longer than the
/// output, the record has the output itself, which adds few bytes to the session.
fn output_in_session(draft: &BundleDraft, output: &[Arc<Message>]) -> Option<i16> {
    let first = draft.history.len().checked_sub(output.len())?;
    let is_end = first >= draft.inherited() && draft.history.iter_from(first).eq(output);
    let is_short_read = || messages_weight(draft.new_messages()) <= MOST_READ_FOR_OUTPUT * messages_weight(output);
    let count = i16::try_from(output.len()).ok();
    count.filter(|count| *count > 0 && is_end && is_short_read())
}

fn prepare(tenant: &TenantId, draft: &BundleDraft, conflict: ConflictPolicy) -> Result<NewSession, DraftFault> {
    let history_start = check_history(draft)?;
    let parent = draft.parent.as_deref();
    let segment_bytes = encode_messages(draft.new_messages()).map_err(DraftFault::Encode)?;
    let segment_hash = hash_segment(&segment_bytes);
    let inherited = draft.inherited();
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
    let mut head = SessionHead {
        session_id: draft.session_id,
        parent_session_id: parent.map(|parent| parent.head.session_id),
        root_session_id: draft.root_session_id(),
        merged_session_id: draft.merged_session_id,
        environment_session_id: draft.environment_session_id,
        run_id: draft.run_id,
        run_status: draft.run_status,
        subagent_of: draft.subagent_of,
        // Only the commit of the run's own session names one.
        thread: None,
        agent: draft.agent.clone(),
        agent_version: draft.agent_version,
        agent_instance: draft.context.stored.agent_instance(),
        depth: draft.depth(),
        execution_count: draft.context.execution_count,
        message_count: draft.history.len() as u64,
        history_start: history_start as u64,
        // Replaced below, since the root hash covers the other fields.
        root_hash: segment_hash,
        environment_hash,
        context_hash,
        segment_hash,
        metadata: draft.context.metadata.clone(),
        title: title_of(&draft.context.metadata),
        preview: preview_of(draft.new_messages().map(AsRef::as_ref))
            .or_else(|| parent.and_then(|parent| parent.head.preview.clone())),
        has_files_changed: draft.has_files_changed(),
        created_at: draft.context.updated_at.trunc_subsecs(6),
        position: parent.map_or(fork, |parent| next_position(parent.head.position)),
    };
    let parent_root = parent.map(|parent| parent.head.root_hash);
    head.root_hash = head.compute_root_hash(parent_root).map_err(DraftFault::Json)?;
    Ok(NewSession {
        tenant: tenant.clone(),
        metadata: serde_json::to_string(&head.metadata).map_err(DraftFault::Json)?,
        head,
        parent: parent.map(|parent| (parent.head.session_id, parent.head.position)),
        fork,
        conflict,
        segment,
        environment,
        context,
        bundle: BundleStates {
            environment: Arc::clone(&draft.environment),
            context: stored_context,
            history: draft.history.held_from(history_start).counted(),
        },
    })
}

/// Hashes the environment. Encodes it unless it is the parent's.
fn prepare_environment(draft: &BundleDraft) -> Result<(Hash, Option<NewEnvironment>), DraftFault> {
    if let Some(parent) = &draft.parent
        && (Arc::ptr_eq(&parent.environment, &draft.environment) || parent.environment == draft.environment)
    {
        return Ok((parent.head.environment_hash, None));
    }
    let (hash, payload) = encode_environment(&draft.environment).map_err(DraftFault::Encode)?;
    let tree = draft.environment.tree();
    Ok((hash, Some(NewEnvironment { tree, payload })))
}

/// Hashes the context. Encodes it unless it is the parent's.
fn prepare_context(draft: &BundleDraft) -> Result<(Hash, Option<Payload>, Arc<StoredContext>), DraftFault> {
    if let Some(parent) = &draft.parent
        && *parent.context == draft.context.stored
    {
        return Ok((parent.head.context_hash, None, Arc::clone(&parent.context)));
    }
    let stored = &draft.context.stored;
    let (hash, payload) = encode_context(stored).map_err(DraftFault::Encode)?;
    let stored = StoredContext {
        created_at: stored.agent_instance().created_at,
        ..stored.clone()
    };
    Ok((hash, Some(payload), Arc::new(stored)))
}

fn next_position(position: BranchPosition) -> BranchPosition {
    BranchPosition {
        position: position.position.saturating_add(1),
        ..position
    }
}
