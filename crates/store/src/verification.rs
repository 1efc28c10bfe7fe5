//! Verification: computes all hashes of a line of sessions again from the stored bytes. Contains no
//! SQL: the engines pass in their rows.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::codec::{CONTEXT_VERSION, ENVIRONMENT_VERSION, decode_environment, open_payload};
use super::error::StoreError;
use super::retention::Ancestor;
use super::rows::{SegmentRow, StateRow};
use super::sessions::{VerifyFault, VerifyReport};
use values::ids::SessionId;
use values::session::{BranchPosition, EnvironmentState, Hash, SessionHead, hash_context, hash_environment};

/// The part of a fault in an environment.
const ENVIRONMENT: &str = "environment_state";
/// The part of a fault in a context.
const CONTEXT: &str = "context_state";
/// The part of a fault in the files of an environment.
pub(crate) const WORKSPACE: &str = "workspace";

/// The hashes of the stored bytes, against which the sessions are checked.
#[derive(Debug)]
pub(crate) struct Verification {
    segments: SegmentCheck,
    states: StateCheck,
}

/// The stored segments of a line.
#[derive(Debug, Default)]
pub(crate) struct SegmentCheck {
    segments: BTreeMap<(Uuid, i64), Segment>,
}

/// The stored states of a line.
#[derive(Debug, Default)]
pub(crate) struct StateCheck {
    /// The states whose bytes match their hash.
    sound: BTreeSet<(&'static str, Hash)>,
    /// The trees of sound environments that have files, by the environment.
    trees: BTreeMap<Hash, Hash>,
    /// Sound environments whose row has another tree than their bytes. A sweep goes by the row.
    wrong_trees: BTreeSet<Hash>,
}

#[derive(Debug)]
struct Segment {
    first_index: i64,
    message_count: i64,
    /// The hash of the messages, and the end of the range that the newest summary among them
    /// covers.
    content: Result<(Hash, Option<u64>), String>,
}

impl SegmentCheck {
    /// Hashes a segment.
    pub(crate) fn push(&mut self, row: &SegmentRow<'_>) {
        let segment = Segment {
            first_index: row.first_index,
            message_count: row.message_count(),
            content: row.inspect().map_err(|error| error.to_string()),
        };
        self.segments.insert((row.branch_id, row.position), segment);
    }
}

impl StateCheck {
    /// Hashes a state.
    pub(crate) fn push(&mut self, row: StateRow<'_>) {
        let stored = row.stored();
        let (kind, computed) = match row.kind {
            "environment" => (
                ENVIRONMENT,
                open_payload(stored, ENVIRONMENT_VERSION).map(|bytes| hash_environment(&bytes)),
            ),
            "context" => (
                CONTEXT,
                open_payload(stored, CONTEXT_VERSION).map(|bytes| hash_context(&bytes)),
            ),
            _ => return,
        };
        let Some(computed) = computed
            .ok()
            .filter(|computed| Hash::try_from(row.hash) == Ok(*computed))
        else {
            return;
        };
        self.sound.insert((kind, computed));
        if kind == ENVIRONMENT {
            self.push_tree(computed, decode_environment(stored).ok(), row.tree);
        }
    }

    /// Compares the tree of an environment with the tree in its row.
    fn push_tree(&mut self, hash: Hash, environment: Option<EnvironmentState>, stored: Option<&[u8]>) {
        let tree = environment.and_then(|environment| environment.tree());
        self.trees.extend(tree.map(|tree| (hash, tree)));
        if stored != tree.as_ref().map(|tree| tree.as_bytes().as_slice()) {
            self.wrong_trees.insert(hash);
        }
    }
}

impl Verification {
    /// Creates a verification from hashed segments and states.
    pub(crate) fn new(segments: SegmentCheck, states: StateCheck) -> Self {
        Self { segments, states }
    }

    /// Checks the sessions of the line, oldest first.
    pub(crate) fn check(&self, line: &[Ancestor]) -> Result<VerifyReport, StoreError> {
        let mut faults = Vec::new();
        let root = line.first().map(Ancestor::session_id);
        let mut parent = None;
        let mut removed = 0;
        for ancestor in line {
            let link = Link::of(ancestor);
            self.check_messages(link, parent, &mut faults);
            match ancestor {
                Ancestor::Retained(head) => {
                    self.check_states(head, &mut faults);
                    check_root(head, parent, &mut faults)?;
                    if Some(head.root_session_id) != root {
                        let detail = "the session's row names another root than that of its line";
                        faults.push(fault(head.session_id, "root_session_id", detail));
                    }
                }
                Ancestor::Removed(_) => removed += 1,
            }
            parent = Some(link);
        }
        Ok(VerifyReport {
            sessions: line.len() as u64 - removed,
            removed,
            messages: parent.map_or(0, |tip| tip.message_count),
            faults,
        })
    }

    /// Returns the trees of the line, each with the oldest session that has it.
    pub(crate) fn trees(&self, line: &[Ancestor]) -> Vec<(SessionId, Hash)> {
        let mut seen = BTreeSet::new();
        let tree_of = |ancestor: &Ancestor| match ancestor {
            Ancestor::Retained(head) => Some((head.session_id, *self.states.trees.get(&head.environment_hash)?)),
            Ancestor::Removed(_) => None,
        };
        let trees = line.iter().filter_map(tree_of);
        trees.filter(|(_, tree)| seen.insert(*tree)).collect()
    }

    fn check_states(&self, head: &SessionHead, faults: &mut Vec<VerifyFault>) {
        for part in [(ENVIRONMENT, head.environment_hash), (CONTEXT, head.context_hash)] {
            if !self.states.sound.contains(&part) {
                faults.push(fault(
                    head.session_id,
                    part.0,
                    "the stored state is missing or differs from its hash",
                ));
            }
        }
        if self.states.wrong_trees.contains(&head.environment_hash) {
            let detail = "the row of the environment states another tree than its payload";
            faults.push(fault(head.session_id, WORKSPACE, detail));
        }
    }

    fn check_messages(&self, head: Link, parent: Option<Link>, faults: &mut Vec<VerifyFault>) {
        let inherited = parent.map_or(0, |parent| parent.message_count);
        let position = (
            head.position.branch_id.as_uuid(),
            i64::try_from(head.position.position).unwrap_or(-1),
        );
        let detail = match self.segments.segments.get(&position) {
            None => "the segment is missing".to_owned(),
            Some(Segment {
                content: Err(detail), ..
            }) => detail.clone(),
            Some(Segment {
                content: Ok((hash, _)), ..
            }) if *hash != head.segment_hash => "the stored messages differ from their hash".to_owned(),
            Some(segment) if !segment.follows(inherited, head.message_count) => {
                "the messages do not follow on those of the parent".to_owned()
            }
            Some(Segment {
                content: Ok((_, covered)),
                ..
            }) => {
                let start = covered.or_else(|| parent.map(|parent| parent.history_start));
                if head.history_start == start.unwrap_or(0) {
                    return;
                }
                "the history does not begin where its newest summary ends".to_owned()
            }
        };
        faults.push(fault(head.session_id, "message_history_state", detail));
    }
}

/// The columns of a session of the line, retained or removed, that verification needs.
#[derive(Debug, Clone, Copy)]
struct Link {
    session_id: SessionId,
    root_hash: Hash,
    segment_hash: Hash,
    message_count: u64,
    history_start: u64,
    position: BranchPosition,
}

impl Link {
    fn of(ancestor: &Ancestor) -> Self {
        match ancestor {
            Ancestor::Retained(head) => Self {
                session_id: head.session_id,
                root_hash: head.root_hash,
                segment_hash: head.segment_hash,
                message_count: head.message_count,
                history_start: head.history_start,
                position: head.position,
            },
            Ancestor::Removed(removed) => Self {
                session_id: removed.session_id,
                root_hash: removed.root_hash,
                segment_hash: removed.segment_hash,
                message_count: removed.message_count,
                history_start: removed.history_start,
                position: removed.position,
            },
        }
    }
}

impl Segment {
    /// Returns whether the segment starts at index `first` and ends at `end`.
    fn follows(&self, first: u64, end: u64) -> bool {
        let stated = u64::try_from(self.first_index)
            .ok()
            .zip(u64::try_from(self.message_count).ok());
        stated.is_some_and(|(stated, count)| stated == first && stated.checked_add(count) == Some(end))
    }
}

fn check_root(head: &SessionHead, parent: Option<Link>, faults: &mut Vec<VerifyFault>) -> Result<(), StoreError> {
    if head.parent_session_id != parent.map(|parent| parent.session_id) {
        faults.push(fault(head.session_id, "root_hash", "the parent is missing"));
        return Ok(());
    }
    let computed = head.compute_root_hash(parent.map(|parent| parent.root_hash));
    let computed = computed.map_err(StoreError::failed("verify session"))?;
    if computed != head.root_hash {
        faults.push(fault(
            head.session_id,
            "root_hash",
            "the session's row differs from its root hash",
        ));
    }
    Ok(())
}

/// Makes a fault.
pub(crate) fn fault(session_id: SessionId, part: &'static str, detail: impl Into<String>) -> VerifyFault {
    VerifyFault {
        session_id,
        part,
        detail: detail.into(),
    }
}
