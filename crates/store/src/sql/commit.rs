//! The shared parts of the engines' commits: why an attempt is refused, the search for the
//! conflicting session, and the result.

use uuid::Uuid;

use super::connection::Connection;
use super::engine::Engine;
use super::queue::{end_insert, lease_end};
use super::session_lookup::session_lookup;
use super::statement::Statement;
use crate::driver_error::{is_unique_violation, store_error};
use crate::error::{CommitError, StoreError};
use crate::publication::{OPERATION, Positions, Publication, Publications};
use crate::rows::values;
use crate::traits::Committed;
use agent::record::ThreadName;
use values::ids::{RunId, SessionId};
use values::session::BranchPosition;

/// Why an attempt published nothing.
pub(crate) enum Refusal {
    /// An earlier attempt of this commit may have taken effect. The session, the run or the branch
    /// exists already, or the run has left the queue. If no earlier attempt did so, the error is
    /// returned.
    Repeated(CommitError),
    Other(CommitError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Other(error.into())
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        let is_taken = is_unique_violation(&error);
        let error = store_error(OPERATION)(error);
        if is_taken {
            Self::Repeated(error.into())
        } else {
            error.into()
        }
    }
}

impl Refusal {
    /// Returns the refusal of a commit whose base is not in the store.
    pub(crate) fn missing_base() -> Self {
        Self::Other(CommitError::MissingBase)
    }

    /// Returns the refusal of a commit whose run has ended without a session.
    pub(crate) fn recorded_run() -> Self {
        StoreError::failed(OPERATION)("the run is recorded already, without a session").into()
    }

    /// Returns the refusal, given the session that continues the parent.
    pub(crate) fn of_successor(publication: &Publication, successor: Option<SuccessorRow>) -> Self {
        match successor {
            Some((Some(session_id), _)) if session_id == publication.head.session_id.as_uuid() => {
                Self::Repeated(CommitError::MissingBase)
            }
            // The conflicting session may be a removed one that others continue.
            Some((_, run_id)) => Self::Other(CommitError::Conflict {
                run_id: run_id.map(RunId::from_uuid),
            }),
            None => Self::missing_base(),
        }
    }
}

/// Checks that the session exists whose environment the commit uses. Locks its row in share mode,
/// so that no removal deletes it before the transaction has ended.
pub(crate) async fn environment_share<E: Engine>(
    connection: &mut Connection<'_>,
    publications: &Publications,
) -> Result<(), Refusal> {
    let Some(session_id) = publications.environment_from else {
        return Ok(());
    };
    let statement = "select 1 from sessions where tenant = $1 and session_id = $2";
    let values = values![&publications.own.tenant, session_id];
    let mut select = Statement::with(OPERATION, statement, values);
    select.push(E::SHARE);
    let found: Option<(i32,)> = connection.fetch_optional(select).await?;
    // If an earlier attempt took effect, the session may be gone since then.
    found
        .map(drop)
        .ok_or(Refusal::Repeated(CommitError::MissingEnvironment))
}

/// Ends the run of a commit and moves its thread, in the commit's transaction. Checks the lease
/// first. Returns whether a run that waited for the thread may now begin.
pub(crate) async fn end_run_of_commit(
    connection: &mut Connection<'_>,
    publications: &mut Publications,
) -> Result<bool, Refusal> {
    let own = &publications.own;
    let mut is_next_released = false;
    if let Some(end) = &publications.end
        && let Some(lease) = &end.lease
    {
        let ended = lease_end(connection, lease, end.thread_name()).await?;
        let ended = ended.ok_or(Refusal::Repeated(CommitError::LeaseLost))?;
        is_next_released = ended.is_next_released;
    }
    if let Some(thread) = &publications.thread {
        connection.execute(thread_statement(own, thread)).await?;
    }
    if let Some(end) = &mut publications.end {
        end.run.row.thread_moved = publications.thread.is_some().then_some(true);
        end_insert(connection, &own.tenant, end).await?;
    }
    Ok(is_next_released)
}

/// Moves a thread. It still points to the session from which the run began, since nobody else moves
/// the thread of an active run.
fn thread_statement<'v>(publication: &'v Publication, thread: &'v ThreadName) -> Statement<'v> {
    let statement = "update threads set session_id = $3, version = version + 1, updated_at = $4
        where tenant = $1 and name = $2";
    let head = &publication.head;
    let values = values![&publication.tenant, thread, head.session_id, head.created_at];
    Statement::with(OPERATION, statement, values)
}

/// A session and its run; both `None` if the session was removed.
pub(crate) type SuccessorRow = (Option<Uuid>, Option<Uuid>);

/// Finds the session that already continues the parent in its branch. Selects a [`SuccessorRow`] if
/// the parent exists.
pub(crate) fn successor_statement(publication: &Publication, parent: SessionId) -> Statement<'_> {
    let statement = "select s.session_id, s.run_id
        from sessions b
        left join sessions s on s.tenant = b.tenant and s.parent_session_id = b.session_id and s.branch_id = $3 and s.position = $4
        where b.tenant = $1 and b.session_id = $2";
    let position = publication.head.position;
    let values = values![&publication.tenant, parent, position.branch_id, position.position];
    Statement::with(OPERATION, statement, values)
}

/// Returns the result of a commit. If the ids are taken, compares the stored sessions. Equal ones
/// were stored by an earlier attempt, whose positions are the result.
pub(crate) async fn answer(
    engine: &impl Engine,
    publications: Publications,
    published: Result<Positions, Refusal>,
) -> Result<Committed, CommitError> {
    let positions = match published {
        Ok(positions) => positions,
        Err(Refusal::Other(error)) => return Err(error),
        Err(Refusal::Repeated(error)) => {
            // If the run's own session does not exist, there was no earlier attempt and another
            // commit conflicts. A worker that has lost its run may find the session that the next
            // worker has published: another one under the same id.
            let own = match earlier_position(engine, &publications.own).await {
                Err(CommitError::Exists) if matches!(error, CommitError::LeaseLost) => None,
                found => found?,
            };
            let own = own.ok_or(error)?;
            let mut children = Vec::with_capacity(publications.children.len());
            for child in &publications.children {
                children.push(earlier_position(engine, child).await?.ok_or(CommitError::Exists)?);
            }
            Positions { own, children }
        }
    };
    Ok(publications.into_committed(positions))
}

/// Finds the position of a session that an earlier attempt stored. Fails if another session has its
/// id.
async fn earlier_position(
    engine: &impl Engine,
    publication: &Publication,
) -> Result<Option<BranchPosition>, CommitError> {
    match session_lookup(engine, &publication.tenant, publication.head.session_id).await? {
        Some(found) if found.root_hash == publication.head.root_hash => Ok(Some(found.position)),
        Some(_) => Err(CommitError::Exists),
        None => Ok(None),
    }
}
