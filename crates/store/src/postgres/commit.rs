//! Writes commits on PostgreSQL.
//!
//! Most commits are one session and the end of its run, which the committer writes in batches. All
//! other commits have a transaction of their own (`sql/commit.rs`): commits with sessions of
//! subagents, a thread, webhooks or messages to mark, and commits about which no batch has decided.
//! The transaction inserts each session by the statement of a batch.

use sqlx::PgConnection;

use super::PostgresStore;
use super::arrays::Number;
use super::commit_batch::{PlainCommit, SessionWrite, Target, end_queued_run, sessions_insert};
use super::committer::AnyWrite;
use super::server_settings::LOCAL_PLAN_SETTINGS;
use crate::error::StoreError;
use crate::new_commit::{NewCommit, NewSession, Positions};
use crate::new_end::NewEnd;
use crate::rows::LeaseKey;
use crate::sql::{CommitOutcome, Connection, Refusal, commit_write_alone};
use values::session::BranchPosition;
use values::tenant::TenantId;

/// Writes a commit: in a batch if possible, or else in a transaction of its own.
pub(super) async fn commit_write(store: &PostgresStore, commit: NewCommit) -> Result<CommitOutcome, StoreError> {
    if !commit.is_plain() {
        return commit_write_alone(store, commit).await;
    }
    match commit_write_in_batch(store, commit).await? {
        (commit, Some(position)) => Ok((commit, position.map(Positions::alone))),
        (commit, None) => commit_write_alone(store, commit).await,
    }
}

/// Writes a commit of one session in a batch. Returns `None` if it needs a transaction of its own,
/// for example to find out why it is refused.
async fn commit_write_in_batch(
    store: &PostgresStore,
    commit: NewCommit,
) -> Result<(NewCommit, Option<Result<BranchPosition, Refusal>>), StoreError> {
    let target = Target::first_of(&commit.own);
    let mut write = PlainCommit { commit, target };
    loop {
        let (returned, outcome) = store.committer.execute(write, AnyWrite::Commit).await?;
        write = returned;
        let own = &write.commit.own;
        let position = match outcome {
            Some(Ok(Some(target))) => Some(Ok(target.position(own))),
            Some(Ok(None)) => match write.target.after_refusal(own) {
                Some(next) => {
                    write.target = next;
                    continue;
                }
                None => None,
            },
            Some(Err(error)) => Some(Err(error.into())),
            None => None,
        };
        return Ok((write.commit, position));
    }
}

/// Inserts a session and ends its run, inside a transaction. If the position is taken, opens a
/// branch or refuses the session, as its conflict policy says.
pub(super) async fn session_insert_on_conn(
    connection: &mut PgConnection,
    session: &NewSession,
    end: Option<&NewEnd>,
) -> Result<BranchPosition, Refusal> {
    if end.is_some_and(|end| end.lease.is_some()) {
        plan_as_in_batch(connection).await?;
    }
    let mut target = Target::first_of(session);
    loop {
        let write = SessionWrite::new(Number::FIRST, session, end, target);
        let taken = sessions_insert(connection, vec![write]).await?;
        if let Some(target) = taken.into_iter().flatten().next() {
            return Ok(target.position(session));
        }
        match (target.after_refusal(session), session.parent) {
            (Some(next), _) => target = next,
            (None, Some((parent, _))) if target == Target::Append => {
                let mut connection = Connection::Postgres(connection);
                return Err(Refusal::of_append(&mut connection, session, parent).await?);
            }
            _ => return Err(Refusal::missing_base()),
        }
    }
}

/// Ends a run without a session, inside a transaction.
pub(super) async fn run_end_on_conn(
    connection: &mut PgConnection,
    tenant: &TenantId,
    lease: &LeaseKey,
    end: &NewEnd,
) -> Result<(), sqlx::Error> {
    plan_as_in_batch(connection).await?;
    end_queued_run(connection, tenant, lease, end).await
}

/// Has the statement that ends runs planned as in a batch. Otherwise its plan may read whole
/// indexes of tables that have grown.
async fn plan_as_in_batch(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LOCAL_PLAN_SETTINGS).execute(connection).await.map(drop)
}
