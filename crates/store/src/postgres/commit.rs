//! Publishes commits on PostgreSQL.
//!
//! Most commits are one session and the end of its run, which the committer publishes in batches.
//! Another commit has a transaction of its own (`sql/commit.rs`): one of a run that publishes
//! subagents' sessions, is on a thread, sends webhooks or has messages to mark, and one about which
//! no batch has decided. The transaction publishes each session by the statement of a batch.

use sqlx::PgConnection;

use super::PostgresStore;
use super::arrays::Number;
use super::committer::AnyWrite;
use super::publish::{PlainPublish, Publish, Target, end_queued_run, publish_sessions};
use super::server_settings::LOCAL_PLAN_SETTINGS;
use crate::error::StoreError;
use crate::new_commit::{NewCommit, NewSession, Positions};
use crate::new_end::NewEnd;
use crate::rows::LeaseKey;
use crate::sql::{Connection, Published, Refusal, publish_alone};
use values::session::BranchPosition;
use values::tenant::TenantId;

/// Publishes a commit.
pub(super) async fn publish(store: &PostgresStore, commit: NewCommit) -> Result<Published, StoreError> {
    if !commit.is_plain() {
        return publish_alone(store, commit).await;
    }
    match publish_in_batch(store, commit).await? {
        (commit, Some(published)) => Ok((commit, published.map(Positions::alone))),
        (commit, None) => publish_alone(store, commit).await,
    }
}

/// Publishes one session through the committer. Returns `None` if it has to be published in a
/// transaction of its own, for example to find out why it is refused.
async fn publish_in_batch(
    store: &PostgresStore,
    commit: NewCommit,
) -> Result<(NewCommit, Option<Result<BranchPosition, Refusal>>), StoreError> {
    let target = Target::first_of(&commit.own);
    let mut publish = PlainPublish { commit, target };
    loop {
        let (returned, outcome) = store.committer.execute(publish, AnyWrite::Publish).await?;
        publish = returned;
        let own = &publish.commit.own;
        let published = match outcome {
            Some(Ok(Some(target))) => Some(Ok(target.position(own))),
            Some(Ok(None)) => match publish.target.after_refusal(own) {
                Some(next) => {
                    publish.target = next;
                    continue;
                }
                None => None,
            },
            Some(Err(error)) => Some(Err(error.into())),
            None => None,
        };
        return Ok((publish.commit, published));
    }
}

/// Publishes a session and ends its run, inside a transaction. If the position is taken, opens a
/// branch or refuses the session, as its conflict policy says.
pub(super) async fn publish_on_conn(
    connection: &mut PgConnection,
    session: &NewSession,
    end: Option<&NewEnd>,
) -> Result<BranchPosition, Refusal> {
    if end.is_some_and(|end| end.lease.is_some()) {
        plan_as_in_batch(connection).await?;
    }
    let mut target = Target::first_of(session);
    loop {
        let publish = Publish::new(Number::FIRST, session, end, target);
        let published = publish_sessions(connection, vec![publish]).await?;
        if let Some(target) = published.into_iter().flatten().next() {
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
