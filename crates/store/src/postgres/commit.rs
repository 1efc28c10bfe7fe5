//! Publishes sessions on PostgreSQL.
//!
//! Most commits are one session and the end of its run, which the committer publishes in batches. A
//! transaction of its own is needed only if the run publishes subagents' sessions, is on a thread
//! or sends webhooks, and if the batch has not decided.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{FromRow, PgConnection, PgPool};
use tracing::Instrument as _;

use super::PostgresStore;
use super::batch_write::Outcome;
use super::publish::{PlainPublish, Publish, Target, publish_sessions};
use super::timeouts::in_time;
use super::wake_ups::QueueWakeUps;
use crate::error::{CommitError, StoreError};
use crate::new_end::NewEnd;
use crate::publication::{OPERATION, Positions, Publication, Publications};
use crate::sql::{Connection, Refusal, answer, end_run_of_commit, environment_share, successor_statement};
use crate::traits::{Commit, Committed, SessionWriter};
use values::session::BranchPosition;

#[async_trait]
impl SessionWriter for PostgresStore {
    async fn session_commit(&self, commit: &Commit) -> Result<Committed, CommitError> {
        let mut publications = Publications::make(commit).await?;
        if publications.is_plain() {
            let (returned, published) = self.publish_in_batch(publications).await?;
            publications = returned;
            if let Some(published) = published {
                return answer(self, publications, published.map(Positions::alone)).await;
            }
        }
        let (pool, wake_ups) = (self.pool.clone(), Arc::clone(&self.wake_ups));
        let work = Box::pin(async move {
            let published = in_time(publish_all(&pool, &wake_ups, &mut publications)).await;
            (publications, published)
        });
        // Runs in a task, so that no caller can cancel it: a transaction that is cancelled while it
        // begins would stay open on its connection.
        let (publications, published) = self
            .tasks
            .spawn(work.in_current_span())
            .await
            .map_err(StoreError::failed(OPERATION))?;
        answer(self, publications, published).await
    }
}

impl PostgresStore {
    /// Publishes one session through the committer. Returns `None` if it has to be published in a
    /// transaction of its own, for example to find out why it is refused.
    async fn publish_in_batch(
        &self,
        publications: Publications,
    ) -> Result<(Publications, Option<Result<BranchPosition, Refusal>>), StoreError> {
        let target = Target::first_of(&publications.own);
        let mut publish = PlainPublish { publications, target };
        loop {
            let (returned, outcome) = self.committer.publish(publish).await?;
            publish = returned;
            let own = &publish.publications.own;
            let published = match outcome {
                Outcome::Decided(Some(target)) => Some(Ok(target.position(own))),
                Outcome::Decided(None) => match publish.target.after_refusal(own) {
                    Some(next) => {
                        publish.target = next;
                        continue;
                    }
                    None => None,
                },
                Outcome::Failed(error) => Some(Err(error.into())),
                Outcome::Undecided => None,
            };
            return Ok((publish.publications, published));
        }
    }
}

/// An error drops the transaction, which rolls it back.
async fn publish_all(
    pool: &PgPool,
    wake_ups: &QueueWakeUps,
    publications: &mut Publications,
) -> Result<Positions, Refusal> {
    let mut transaction = pool.begin().await?;
    environment_share::<PostgresStore>(&mut Connection::Postgres(&mut transaction), publications).await?;
    let is_next_released = end_run_of_commit(&mut Connection::Postgres(&mut transaction), publications).await?;
    let own = publish(&mut transaction, &publications.own, publications.new_end()).await?;
    let mut children = Vec::with_capacity(publications.children.len());
    for child in &publications.children {
        children.push(publish(&mut transaction, child, None).await?);
    }
    if is_next_released {
        wake_ups.commit(transaction).await?;
    } else {
        transaction.commit().await?;
    }
    Ok(Positions { own, children })
}

/// Publishes a session. If its position is taken, opens a branch or refuses the session, as its
/// conflict policy says.
async fn publish(
    connection: &mut PgConnection,
    publication: &Publication,
    end: Option<&NewEnd>,
) -> Result<BranchPosition, Refusal> {
    let mut target = Target::first_of(publication);
    loop {
        let publish = Publish {
            publication,
            end,
            target,
        };
        let published = publish_sessions(connection, &[publish]).await?;
        if let Some(target) = published.into_iter().flatten().next() {
            return Ok(target.position(publication));
        }
        match target.after_refusal(publication) {
            Some(next) => target = next,
            None => return Err(refusal(connection, publication, target).await?),
        }
    }
}

/// Finds out why a session is refused.
async fn refusal(
    connection: &mut PgConnection,
    publication: &Publication,
    target: Target,
) -> Result<Refusal, sqlx::Error> {
    match publication.parent {
        Some((parent, _)) if target == Target::Append => {
            let successor = successor_statement(publication, parent).into_query();
            let successor = successor.fetch_optional(connection).await?;
            let successor = successor.as_ref().map(FromRow::from_row).transpose()?;
            Ok(Refusal::of_successor(publication, successor))
        }
        _ => Ok(Refusal::missing_base()),
    }
}
