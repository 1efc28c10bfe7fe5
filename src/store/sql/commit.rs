//! What the commits of both engines share: why an attempt is refused, the search for the session in the way, and the answer.

use uuid::Uuid;

use super::engine::Engine;
use super::sessions::session_lookup;
use super::statement::Statement;
use crate::ids::{RunId, SessionId};
use crate::session::BranchPosition;
use crate::store::driver_error::{is_unique_violation, store_error};
use crate::store::error::{CommitError, StoreError};
use crate::store::publication::{OPERATION, Places, Publication, Publications};
use crate::store::rows::stored_count;
use crate::store::traits::Committed;

/// Why an attempt published nothing.
pub(crate) enum Refusal {
    /// A session or run of this id, or the branch, exists. The error is the answer unless an earlier attempt made them.
    KeyTaken(StoreError),
    Other(CommitError),
}

/// What is wrong with a commit that only the database can tell.
#[derive(Debug, thiserror::Error)]
enum CommitFault {
    #[error("the session that it continues is not in the store")]
    MissingBase,
    #[error("the run is recorded already, without a session")]
    RecordedRun,
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
        if is_taken { Self::KeyTaken(error) } else { error.into() }
    }
}

impl Refusal {
    /// The base is not, or no longer, in the store.
    pub(crate) fn missing_base() -> Self {
        failed(CommitFault::MissingBase).into()
    }

    /// The run has ended otherwise.
    pub(crate) fn recorded_run() -> Self {
        failed(CommitFault::RecordedRun).into()
    }

    /// Says what it means that this session continues the parent.
    pub(crate) fn of_successor(publication: &Publication, successor: Option<SuccessorRow>) -> Self {
        match successor {
            Some((session_id, _)) if session_id == publication.head.session_id.as_uuid() => {
                Self::KeyTaken(failed(CommitFault::MissingBase))
            }
            Some((_, run_id)) => Self::Other(CommitError::Conflict {
                run_id: run_id.map(RunId::from_uuid),
            }),
            None => Self::missing_base(),
        }
    }
}

/// A session and its run.
pub(crate) type SuccessorRow = (Uuid, Option<Uuid>);

/// Finds the session that continues the parent where this one would: a [`SuccessorRow`].
pub(crate) fn successor_statement(publication: &Publication, parent: SessionId) -> Statement<'_> {
    let statement = "select session_id, run_id from sessions
        where tenant = $1 and parent_session_id = $2 and branch_id = $3 and position = $4";
    let position = publication.head.position;
    Statement::new(OPERATION, statement)
        .bind(publication.tenant.as_str())
        .bind(parent.as_uuid())
        .bind(position.branch_id.as_uuid())
        .bind(stored_count(position.position))
}

/// Makes the answer to a commit. Where the ids were taken, equal sessions are an earlier attempt's, and their places are the answer.
pub(crate) async fn answer(
    engine: &impl Engine,
    publications: Publications,
    published: Result<Places, Refusal>,
) -> Result<Committed, CommitError> {
    let places = match published {
        Ok(places) => places,
        Err(Refusal::Other(error)) => return Err(error),
        Err(Refusal::KeyTaken(error)) => {
            // Without the run's own session there was no earlier attempt: the key that was taken is another's.
            let own = earlier_place(engine, &publications.own).await?;
            let own = own.ok_or(CommitError::Store(error))?;
            let mut children = Vec::with_capacity(publications.children.len());
            for child in &publications.children {
                children.push(earlier_place(engine, child).await?.ok_or(CommitError::Exists)?);
            }
            Places { own, children }
        }
    };
    Ok(publications.into_committed(places))
}

/// Finds the place that an earlier attempt has given a session; another session of its id is an error.
async fn earlier_place(engine: &impl Engine, publication: &Publication) -> Result<Option<BranchPosition>, CommitError> {
    match session_lookup(engine, &publication.tenant, publication.head.session_id).await? {
        Some(found) if found.root_hash == publication.head.root_hash => Ok(Some(found.position)),
        Some(_) => Err(CommitError::Exists),
        None => Ok(None),
    }
}

fn failed(fault: CommitFault) -> StoreError {
    StoreError::Failed {
        operation: OPERATION,
        source: fault.into(),
    }
}
