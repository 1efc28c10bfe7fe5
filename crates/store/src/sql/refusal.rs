//! The reasons why an attempt to commit writes nothing, and the search for the conflicting session.

use uuid::Uuid;

use super::connection::Connection;
use super::statement::Statement;
use crate::driver_error::{is_unique_violation, store_error};
use crate::error::{CommitError, StoreError};
use crate::new_commit::{NewCommit, NewSession, OPERATION, Positions};
use crate::rows::values;
use values::ids::{RunId, SessionId};

/// A commit, and the positions of its sessions unless it was refused.
pub(crate) type CommitOutcome = (NewCommit, Result<Positions, Refusal>);

/// The reason why an attempt wrote nothing.
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

    /// Finds out why a session does not get the position after its parent.
    pub(crate) async fn of_append(
        connection: &mut Connection<'_>,
        session: &NewSession,
        parent: SessionId,
    ) -> Result<Self, sqlx::Error> {
        let statement = "select s.session_id, s.run_id
            from sessions b
            left join sessions s
                on s.tenant = b.tenant and s.parent_session_id = b.session_id and s.branch_id = $3 and s.position = $4
            where b.tenant = $1 and b.session_id = $2";
        let position = session.head.position;
        let values = values![&session.tenant, parent, position.branch_id, position.position];
        let select = Statement::with(OPERATION, statement, values);
        // The session that continues the parent, and its run. Both are null if it was removed.
        let successor: Option<(Option<Uuid>, Option<Uuid>)> = connection.fetch_optional(select).await?;
        Ok(match successor {
            Some((Some(session_id), _)) if session_id == session.head.session_id.as_uuid() => {
                Self::Repeated(CommitError::MissingBase)
            }
            // The conflicting session may be a removed one that others continue.
            Some((_, run_id)) => Self::Other(CommitError::Conflict {
                run_id: run_id.map(RunId::from_uuid),
            }),
            None => Self::missing_base(),
        })
    }
}
