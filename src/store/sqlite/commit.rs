//! Publishes sessions on SQLite: one `begin immediate` transaction on the writer connection, in a
//! task that no caller cancels.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::{Connection as _, FromRow, SqliteConnection, SqlitePool};

use super::SqliteStore;
use crate::ids::SessionId;
use crate::session::BranchPosition;
use crate::store::codec::Payload;
use crate::store::error::{CommitError, StoreError};
use crate::store::publication::{OPERATION, Positions, Publication, Publications};
use crate::store::rows::{NewRun, SessionRow, stored_count};
use crate::store::sql::{
    Connection, Refusal, Statement, answer, insert_statement, run_insert_statement, settle, successor_statement,
};
use crate::store::traits::{Commit, Committed, ConflictPolicy, SessionWriter};
use crate::store::wake_ups::WakeUps;

impl SessionWriter for SqliteStore {
    fn session_commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<Committed, CommitError>> {
        Box::pin(async move {
            let publications = Publications::make(commit).await?;
            let (writer, wake_ups) = (self.writer.clone(), Arc::clone(&self.wake_ups));
            let work = async move {
                let published = publish_all(&writer, &wake_ups, &publications).await;
                Ok::<_, StoreError>((publications, published))
            };
            let (publications, published) = self.write(OPERATION, work).await?;
            answer(self, publications, published).await
        })
    }
}

/// An error drops the transaction, which rolls it back.
async fn publish_all(
    writer: &SqlitePool,
    wake_ups: &WakeUps,
    publications: &Publications,
) -> Result<Positions, Refusal> {
    let mut connection = writer.acquire().await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    let settled = settle(&mut Connection::Sqlite(&mut transaction), publications).await?;
    let own = publish(&mut transaction, &publications.own, publications.new_run()).await?;
    let mut children = Vec::with_capacity(publications.children.len());
    for child in &publications.children {
        children.push(publish(&mut transaction, child, None).await?);
    }
    transaction.commit().await?;
    if settled.is_next_released {
        wake_ups.send();
    }
    Ok(Positions {
        own,
        children,
        thread_moved: settled.thread_moved,
    })
}

async fn publish(
    connection: &mut SqliteConnection,
    publication: &Publication,
    run: Option<&NewRun>,
) -> Result<BranchPosition, Refusal> {
    let position = take_position(connection, publication).await?;
    for (kind, hash, payload) in [
        (
            "environment",
            publication.head.environment_hash,
            &publication.environment,
        ),
        ("context", publication.head.context_hash, &publication.context),
    ] {
        if let Some(payload) = payload {
            state_insert(connection, publication, kind, hash.as_bytes(), payload).await?;
        }
    }
    session_insert(connection, publication, position).await?;
    if let Some(run) = run {
        let insert = run_insert_statement(OPERATION, &publication.tenant, run).into_query();
        if insert.execute(&mut *connection).await?.rows_affected() == 0 {
            return Err(Refusal::recorded_run());
        }
    }
    Ok(position)
}

/// Inserts the segment: at the next position of the parent's branch, or else on a branch of its
/// own.
async fn take_position(
    connection: &mut SqliteConnection,
    publication: &Publication,
) -> Result<BranchPosition, Refusal> {
    if let Some((parent, end)) = publication.parent {
        if !session_stands_at(connection, publication, parent, end).await? {
            return Err(Refusal::missing_base());
        }
        let position = publication.head.position;
        if segment_insert(connection, publication, position).await? {
            return Ok(position);
        }
        if publication.conflict == ConflictPolicy::Reject {
            let successor = successor_statement(publication, parent).into_query();
            let successor = successor.fetch_optional(&mut *connection).await?;
            let successor = successor.as_ref().map(FromRow::from_row).transpose()?;
            return Err(Refusal::of_successor(publication, successor));
        }
    }
    let fork = publication.fork;
    let statement = "insert into history_branches (tenant, branch_id, parent_branch_id, parent_position)
        values ($1, $2, $3, $4)";
    sqlx::query(statement)
        .bind(publication.tenant.as_str())
        .bind(fork.branch_id.as_uuid())
        .bind(publication.parent.map(|(_, end)| end.branch_id.as_uuid()))
        .bind(publication.parent.map(|(_, end)| stored_count(end.position)))
        .execute(&mut *connection)
        .await?;
    segment_insert(connection, publication, fork).await?;
    Ok(fork)
}

async fn session_stands_at(
    connection: &mut SqliteConnection,
    publication: &Publication,
    session_id: SessionId,
    end: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "select exists (
        select 1 from sessions where tenant = $1 and session_id = $2 and branch_id = $3 and position = $4)";
    sqlx::query_scalar(statement)
        .bind(publication.tenant.as_str())
        .bind(session_id.as_uuid())
        .bind(end.branch_id.as_uuid())
        .bind(stored_count(end.position))
        .fetch_one(connection)
        .await
}

/// Tells whether the position was free.
async fn segment_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    position: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict do nothing";
    let insert = Statement::new(OPERATION, statement)
        .bind(publication.tenant.as_str())
        .bind(position.branch_id.as_uuid())
        .bind(stored_count(position.position))
        .bind(publication.segment.first_index)
        .bind(publication.segment.message_count)
        .bind_payload(&publication.segment.payload);
    let inserted = insert.into_query().execute(connection).await?;
    Ok(inserted.rows_affected() > 0)
}

async fn state_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    kind: &'static str,
    hash: &[u8],
    payload: &Payload,
) -> Result<(), sqlx::Error> {
    let statement = "insert into states (tenant, hash, kind, schema_version, encoding, payload)
        values ($1, $2, $3, $4, $5, $6)
        on conflict do nothing";
    let insert = Statement::new(OPERATION, statement)
        .bind(publication.tenant.as_str())
        .bind(hash)
        .bind(kind)
        .bind_payload(payload);
    insert.into_query().execute(connection).await?;
    Ok(())
}

async fn session_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    position: BranchPosition,
) -> Result<(), sqlx::Error> {
    let session = SessionRow::new(&publication.head, position, &publication.metadata);
    let insert = insert_statement(
        OPERATION,
        "insert into sessions (tenant, ",
        &publication.tenant,
        &session,
    );
    insert.into_query().execute(connection).await?;
    Ok(())
}
