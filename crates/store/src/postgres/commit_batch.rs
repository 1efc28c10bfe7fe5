//! Inserts sessions and ends their runs with one statement: any number of them, each all or
//! nothing. The statement also ends a run of the queue without a session. Its text is in
//! `commit_statement.rs`.
//!
//! The statement is atomic, and any error undoes all of it. A session whose position is taken, or
//! whose parent does not exist, is left out. It refuses no other session. Of the sessions that
//! continue the same one, the first that nothing else refuses tries the position after it. The
//! others open branches at once or are left out, as their conflict policies say.
//!
//! Rows are sorted by their keys, and the statement writes the tables in the same order each time.
//! So two processes that insert the same states, or take the same positions, wait for each other
//! in one order, and never deadlock.

use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::arrays::{Number, decisions};
use super::batch_write::{BatchWrite, WriteKey};
use super::commit_statement::CommitStatement;
use crate::codec::Payload;
use crate::new_commit::{NewCommit, NewSession};
use crate::new_end::NewEnd;
use crate::rows::{LeaseKey, Row, SessionRow, Value};
use crate::sessions::ConflictPolicy;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// A session to insert, with the position to try and its number in the batch.
#[derive(Debug)]
pub(super) struct SessionWrite<'v> {
    session: &'v NewSession,
    /// The end of its run, unless other statements write it. A run with a lease leaves the queue.
    end: Option<&'v NewEnd>,
    target: Target,
    number: Number,
    row: SessionRow,
}

/// The position that a session takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The position after its parent's. If another session of the statement takes it, a session
    /// that may fork opens a branch. If it is taken otherwise, the session is refused.
    Append,
    /// The first position of a branch of its own.
    Branch,
}

impl Target {
    /// Returns the target to try first. A session without a parent opens a branch.
    pub(super) fn first_of(session: &NewSession) -> Self {
        match session.parent {
            Some(_) => Self::Append,
            None => Self::Branch,
        }
    }

    /// Returns the target to try next if this one was refused.
    pub(super) fn after_refusal(self, session: &NewSession) -> Option<Self> {
        let forks = self == Self::Append && session.conflict == ConflictPolicy::Fork;
        forks.then_some(Self::Branch)
    }

    /// Returns the position.
    pub(super) fn position(self, session: &NewSession) -> BranchPosition {
        match self {
            Self::Append => session.head.position,
            Self::Branch => session.fork,
        }
    }
}

/// A commit of one session and the end of its run, with the position to try.
#[derive(Debug)]
pub(super) struct PlainCommit {
    pub(super) commit: NewCommit,
    pub(super) target: Target,
}

#[async_trait]
impl BatchWrite for PlainCommit {
    /// The position that it took, unless it was refused.
    type Decision = Option<Target>;

    /// Returns the branch of its own, so that a batch has no commit twice.
    fn key(&self) -> Option<WriteKey> {
        let own = &self.commit.own;
        Some(WriteKey::Branch(own.tenant.clone(), own.fork.branch_id.as_uuid()))
    }

    fn bytes(&self) -> usize {
        self.commit.own.bytes() + self.commit.end.as_ref().map_or(0, NewEnd::bytes)
    }

    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Option<Target>>, sqlx::Error> {
        let sessions = writes.iter().zip(Number::all()).map(|(write, number)| {
            let NewCommit { own, end, .. } = &write.commit;
            SessionWrite::new(number, own, end.as_ref(), write.target)
        });
        sessions_insert(connection, sessions.collect()).await
    }
}

/// Inserts sessions and ends their runs. Returns for each the position that it took; `None` if it
/// was refused.
pub(super) async fn sessions_insert(
    connection: &mut PgConnection,
    mut sessions: Vec<SessionWrite<'_>>,
) -> Result<Vec<Option<Target>>, sqlx::Error> {
    sessions.sort_by_key(SessionWrite::key);
    let states: Vec<_> = sessions.iter().flat_map(NewState::of).collect();
    let mut statement = CommitStatement::default();
    for write in &sessions {
        let tenant = &write.session.tenant;
        statement.sessions.push(tenant, &[write]);
        if let Some(end) = write.end {
            statement.push_end(tenant, &write.number, end);
        }
    }
    for state in &states {
        statement.states.push(state.tenant, &[state]);
    }
    let decided = statement.execute(connection).await?;
    decisions(&decided, sessions.len(), |row| {
        let appends = row.try_get(1)?;
        Ok(Some(if appends { Target::Append } else { Target::Branch }))
    })
}

/// Ends a run of the queue without a session.
pub(super) async fn end_queued_run(
    connection: &mut PgConnection,
    tenant: &TenantId,
    lease: &LeaseKey,
    end: &NewEnd,
) -> Result<(), sqlx::Error> {
    let number = Number::FIRST;
    let mut statement = CommitStatement::default();
    statement.push_queued_end(tenant, &number, lease, end);
    match statement.execute(connection).await?.len() {
        // A run in the queue always has a record.
        0 => Err(sqlx::Error::RowNotFound),
        _ => Ok(()),
    }
}

impl<'v> SessionWrite<'v> {
    /// Creates the write with this number in its batch.
    pub(super) fn new(number: Number, session: &'v NewSession, end: Option<&'v NewEnd>, target: Target) -> Self {
        let NewSession { head, metadata, .. } = session;
        Self {
            session,
            end,
            target,
            number,
            row: SessionRow::new(head, head.position, metadata),
        }
    }

    fn key(&self) -> (TenantId, Uuid, u64) {
        let position = self.target.position(self.session);
        (
            self.session.tenant.clone(),
            position.branch_id.as_uuid(),
            position.position,
        )
    }
}

impl Row for SessionWrite<'_> {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        let session = self.session;
        let parent = session.parent.map(|(_, position)| position);
        let next = (self.target == Target::Append).then_some(session.head.position);
        let may_fork = next.is_none() || session.conflict == ConflictPolicy::Fork;
        let segment = &session.segment;
        self.number.visit(column);
        column("is_queued", self.end.is_some_and(|end| end.lease.is_some()).into());
        column("next_branch_id", next.map(|next| next.branch_id).into());
        column("next_position", next.map(|next| next.position).into());
        column("fork_branch_id", may_fork.then_some(session.fork.branch_id).into());
        column("parent_branch_id", parent.map(|parent| parent.branch_id).into());
        column("parent_position", parent.map(|parent| parent.position).into());
        column("first_index", segment.first_index.into());
        column("segment_messages", segment.message_count.into());
        column("segment_version", segment.payload.schema_version.into());
        column("segment_encoding", segment.payload.encoding.into());
        column("segment_payload", (&segment.payload.bytes).into());
        // The statement adds the position.
        self.row.visit(&mut |name, value| {
            if !matches!(name, "branch_id" | "position") {
                column(name, value);
            }
        });
    }
}

/// A state of a session that differs from its parent's.
#[derive(Debug)]
struct NewState<'v> {
    tenant: &'v TenantId,
    number: Number,
    kind: &'static str,
    hash: &'v Hash,
    tree: Option<&'v Hash>,
    payload: &'v Payload,
}

impl<'v> NewState<'v> {
    fn of(write: &'v SessionWrite<'v>) -> impl Iterator<Item = Self> {
        let session = write.session;
        let state = |kind, hash, tree, payload| Self {
            tenant: &session.tenant,
            number: write.number,
            kind,
            hash,
            tree,
            payload,
        };
        let head = &session.head;
        let environment = session.environment.as_ref().map(|environment| {
            let tree = environment.tree.as_ref();
            state("environment", &head.environment_hash, tree, &environment.payload)
        });
        let context = session.context.as_ref();
        let context = context.map(|context| state("context", &head.context_hash, None, context));
        environment.into_iter().chain(context)
    }
}

impl Row for NewState<'_> {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        self.number.visit(column);
        column("kind", self.kind.into());
        column("hash", self.hash.into());
        column("tree", self.tree.into());
        self.payload.visit(column);
    }
}
