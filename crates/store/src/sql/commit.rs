//! Commits: the order of their statements in a transaction, and their result. Each engine inserts
//! a session and ends its run in its own way.

use async_trait::async_trait;

use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::queue::{end_complete, lease_lock};
use super::refusal::{CommitOutcome, Refusal};
use super::session_lookup::session_lookup;
use super::statement::Statement;
use super::threads::active_run;
use crate::error::{CommitError, StoreError};
use crate::new_commit::{NewCommit, NewSession, OPERATION, Positions};
use crate::rows::values;
use crate::sessions::{Commit, Committed, SessionWriter, ThreadMove};
use values::session::BranchPosition;

#[async_trait]
impl<E: Engine> SessionWriter for E {
    async fn session_commit(&self, commit: &Commit) -> Result<Committed, CommitError> {
        let commit = NewCommit::make(commit).await?;
        let (commit, positions) = self.commit_write(commit).await?;
        result_of(self, commit, positions).await
    }
}

/// Writes a commit in a transaction of its own.
pub(crate) async fn commit_write_alone<E: Engine>(engine: &E, commit: NewCommit) -> Result<CommitOutcome, StoreError> {
    engine
        .transact(OPERATION, move |connection| {
            Box::pin(write_or_undo::<E>(connection, commit))
        })
        .await
}

async fn write_or_undo<E: Engine>(
    mut connection: Connection<'_>,
    commit: NewCommit,
) -> Result<Ended<CommitOutcome>, sqlx::Error> {
    Ok(match commit_write_in_txn::<E>(&mut connection, &commit).await {
        Ok((positions, true)) => Ended::CommittedForWorkers((commit, Ok(positions))),
        Ok((positions, false)) => Ended::Committed((commit, Ok(positions))),
        Err(refusal) => Ended::RolledBack((commit, Err(refusal))),
    })
}

/// Inserts all sessions and ends the run. Also returns whether a run that waited for the thread
/// may now begin.
async fn commit_write_in_txn<E: Engine>(
    connection: &mut Connection<'_>,
    commit: &NewCommit,
) -> Result<(Positions, bool), Refusal> {
    environment_share::<E>(connection, commit).await?;
    let own = &commit.own;
    let end = commit.end.as_ref();
    if let Some(lease) = end.and_then(|end| end.lease.as_ref())
        && !lease_lock::<E>(connection, lease).await?
    {
        return Err(Refusal::Repeated(CommitError::LeaseLost));
    }
    let position = E::session_insert_on_conn(connection, own, end).await?;
    let is_next_released = match end {
        Some(end) => end_complete::<E>(connection, &own.tenant, end).await?,
        None => false,
    };
    if let Some(thread) = &commit.thread {
        thread_move(connection, own, thread, end.is_some()).await?;
    }
    let mut children = Vec::with_capacity(commit.children.len());
    for child in &commit.children {
        children.push(E::session_insert_on_conn(connection, child, None).await?);
    }
    Ok((
        Positions {
            own: position,
            children,
        },
        is_next_released,
    ))
}

/// Checks that the session exists whose environment the commit uses. Locks its row in share mode,
/// so that no removal deletes it before the transaction has ended.
async fn environment_share<E: Engine>(connection: &mut Connection<'_>, commit: &NewCommit) -> Result<(), Refusal> {
    let Some(session_id) = commit.environment_from else {
        return Ok(());
    };
    let statement = "select 1 from sessions where tenant = $1 and session_id = $2";
    let values = values![&commit.own.tenant, session_id];
    let mut select = Statement::with(OPERATION, statement, values);
    select.push(E::SHARE);
    let found: Option<(i32,)> = connection.fetch_optional(select).await?;
    // If an earlier attempt took effect, the session may be gone since then.
    found
        .map(drop)
        .ok_or(Refusal::Repeated(CommitError::MissingEnvironment))
}

/// Moves a thread. Nobody else moves the thread of an active run, so the end of a run moves it from
/// wherever it points. A change without a run moves it only from the session that it changes, and
/// looks for active runs with the row of the thread locked, as `threads.rs` does.
async fn thread_move(
    connection: &mut Connection<'_>,
    session: &NewSession,
    ThreadMove { name: thread, from }: &ThreadMove,
    ends_run: bool,
) -> Result<(), Refusal> {
    let statement = "update threads set session_id = $3, version = version + 1, updated_at = $4,
            run_count = run_count + $5
        where tenant = $1 and name = $2";
    let (tenant, head) = (&session.tenant, &session.head);
    let values = values![tenant, thread, head.session_id, head.created_at, i64::from(ends_run)];
    let mut update = Statement::with(OPERATION, statement, values);
    if ends_run {
        connection.execute(update).await?;
        return Ok(());
    }
    update.push_bind(" and session_id is not distinct from ", *from);
    if connection.execute(update).await? == 0 {
        // An earlier attempt may have moved it.
        let name = thread.clone();
        return Err(Refusal::Repeated(CommitError::ThreadMoved { name }));
    }
    match active_run(connection, tenant, thread).await? {
        Some(run_id) => Err(Refusal::Other(CommitError::ThreadBusy {
            name: thread.clone(),
            run_id,
        })),
        None => Ok(()),
    }
}

/// Returns the result of a commit. If the ids are taken, compares the stored sessions. Equal ones
/// were stored by an earlier attempt, whose positions are the result.
async fn result_of(
    engine: &impl Engine,
    commit: NewCommit,
    positions: Result<Positions, Refusal>,
) -> Result<Committed, CommitError> {
    let positions = match positions {
        Ok(positions) => positions,
        Err(Refusal::Other(error)) => return Err(error),
        Err(Refusal::Repeated(error)) => {
            // If the run's own session does not exist, there was no earlier attempt and another
            // commit conflicts. A worker that has lost its run may find the session that the next
            // worker has published: another one under the same id.
            let own = match earlier_position(engine, &commit.own).await {
                Err(CommitError::Exists) if matches!(error, CommitError::LeaseLost) => None,
                found => found?,
            };
            let own = own.ok_or(error)?;
            let mut children = Vec::with_capacity(commit.children.len());
            for child in &commit.children {
                children.push(earlier_position(engine, child).await?.ok_or(CommitError::Exists)?);
            }
            Positions { own, children }
        }
    };
    Ok(commit.into_committed(positions))
}

/// Finds the position of a session that an earlier attempt stored. Fails if another session has its
/// id.
async fn earlier_position(engine: &impl Engine, session: &NewSession) -> Result<Option<BranchPosition>, CommitError> {
    match session_lookup(engine, &session.tenant, session.head.session_id).await? {
        Some(found) if found.root_hash == session.head.root_hash => Ok(Some(found.position)),
        Some(_) => Err(CommitError::Exists),
        None => Ok(None),
    }
}
