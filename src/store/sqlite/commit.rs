//! Publishes sessions on SQLite: one `begin immediate` transaction on the writer connection, in a
//! task that no caller cancels.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::{Connection as _, FromRow, SqliteConnection, SqlitePool};

use super::SqliteStore;
use crate::ids::{RunId, SessionId};
use crate::session::BranchPosition;
use crate::store::codec::{Payload, SESSION_VERSION};
use crate::store::error::{CommitError, StoreError};
use crate::store::new_run::NewRun;
use crate::store::publication::{OPERATION, Places, Publication, Publications};
use crate::store::rows::{StoredTime, stored_count};
use crate::store::sql::{Connection, Refusal, Statement, answer, run_insert_statement, settle, successor_statement};
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
async fn publish_all(writer: &SqlitePool, wake_ups: &WakeUps, publications: &Publications) -> Result<Places, Refusal> {
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
    Ok(Places {
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

/// Inserts the segment: at the next position of the parent's branch, or else on a branch of its own.
async fn take_position(
    connection: &mut SqliteConnection,
    publication: &Publication,
) -> Result<BranchPosition, Refusal> {
    if let Some((parent, place)) = publication.parent {
        if !session_stands_at(connection, publication, parent, place).await? {
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
        .bind(publication.parent.map(|(_, place)| place.branch_id.as_uuid()))
        .bind(publication.parent.map(|(_, place)| stored_count(place.position)))
        .execute(&mut *connection)
        .await?;
    segment_insert(connection, publication, fork).await?;
    Ok(fork)
}

async fn session_stands_at(
    connection: &mut SqliteConnection,
    publication: &Publication,
    session_id: SessionId,
    place: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "select exists (
        select 1 from sessions where tenant = $1 and session_id = $2 and branch_id = $3 and position = $4)";
    sqlx::query_scalar(statement)
        .bind(publication.tenant.as_str())
        .bind(session_id.as_uuid())
        .bind(place.branch_id.as_uuid())
        .bind(stored_count(place.position))
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
        .bind_payload(Some(&publication.segment.payload));
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
        .bind_payload(Some(payload));
    insert.into_query().execute(connection).await?;
    Ok(())
}

async fn session_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    position: BranchPosition,
) -> Result<(), sqlx::Error> {
    let head = &publication.head;
    let statement = "insert into sessions (
            tenant, branch_id, position, session_id, parent_session_id, run_id, agent, agent_version, depth,
            execution_count, message_count, root_hash, environment_hash, context_hash, segment_hash, metadata,
            created_at, schema_version, history_start, subagent_of)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
    sqlx::query(statement)
        .bind(publication.tenant.as_str())
        .bind(position.branch_id.as_uuid())
        .bind(stored_count(position.position))
        .bind(head.session_id.as_uuid())
        .bind(head.parent_session_id.map(SessionId::as_uuid))
        .bind(head.run_id.map(RunId::as_uuid))
        .bind(head.agent.as_str())
        .bind(head.agent_version.as_ref().map(|hash| hash.as_bytes().as_slice()))
        .bind(stored_count(head.depth))
        .bind(stored_count(head.execution_count))
        .bind(stored_count(head.message_count))
        .bind(head.root_hash.as_bytes().as_slice())
        .bind(head.environment_hash.as_bytes().as_slice())
        .bind(head.context_hash.as_bytes().as_slice())
        .bind(head.segment_hash.as_bytes().as_slice())
        .bind(publication.metadata.as_str())
        .bind(StoredTime(head.created_at))
        .bind(SESSION_VERSION)
        .bind(stored_count(head.history_start))
        .bind(head.subagent_of.map(SessionId::as_uuid))
        .execute(connection)
        .await?;
    Ok(())
}
