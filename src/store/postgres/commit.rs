//! Publishes sessions on PostgreSQL, all or nothing.
//!
//! One statement inserts the segment, the states, the session and the run's record. A commit needs
//! a transaction of several statements if the run was queued, moves a thread, has subagents'
//! sessions, or reports its end to a webhook.
//!
//! The statement shares the parent's row (`for share`), so no removal can take the parent
//! meanwhile. A state that may already exist is inserted under the lock of its hash.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::{FromRow, PgConnection, PgPool, Row as _};

use super::PostgresStore;
use super::patience::in_time;
use super::removal::state_lock;
use super::wake_ups::QueueWakeUps;
use crate::ids::{RunId, SessionId};
use crate::session::BranchPosition;
use crate::store::codec::SESSION_VERSION;
use crate::store::driver_error::task_error;
use crate::store::error::CommitError;
use crate::store::new_run::NewRun;
use crate::store::publication::{OPERATION, Places, Publication, Publications};
use crate::store::rows::{StoredTime, stored_count};
use crate::store::sql::{Connection, Refusal, Statement, answer, settle, successor_statement};
use crate::store::traits::{Commit, Committed, ConflictPolicy, SessionWriter};

/// Finds the parent, which stays until the transaction has ended: it is shared with those who remove sessions.
macro_rules! shared_parent {
    () => {
        "with parent as (
            select 1 from sessions
            where tenant = $1 and session_id = $10 and branch_id = $11 and position = $12
            for share
        ), "
    };
}

/// Inserts a state unless it is there already, with its lock held before that is found out.
macro_rules! insert_state {
    ($kind:literal, $hash:literal, $version:literal, $encoding:literal, $payload:literal) => {
        concat!(
            "insert into states (tenant, hash, kind, schema_version, encoding, payload)
            select $1, ",
            $hash,
            ", '",
            $kind,
            "', ",
            $version,
            ", ",
            $encoding,
            ", ",
            $payload,
            " from segment, lateral (select pg_advisory_xact_lock_shared(",
            state_lock!("$1", $hash),
            ") where ",
            $payload,
            " is not null) held
            on conflict do nothing"
        )
    };
}

/// What both statements insert once the segment has its place: `$1` to `$66`.
macro_rules! insert_all_but_segment {
    () => {
        concat!(
            "environment as (",
            insert_state!("environment", "$20", "$25", "$26", "$27"),
            "), context as (",
            insert_state!("context", "$21", "$28", "$29", "$30"),
            "), session as (
            insert into sessions (
                tenant, branch_id, position, session_id, parent_session_id, run_id, agent, agent_version, depth,
                execution_count, message_count, root_hash, environment_hash, context_hash, segment_hash, metadata,
                created_at, schema_version, history_start, subagent_of)
            select $1, $2, $3, $9, $10, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $64, $65, $66
            from segment
        ), run as (
            insert into runs (
                tenant, run_id, session_id, base_session_id, agent, agent_version, model, mode, status, stop_reason,
                input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, total_tokens,
                cost, step_count, error, metadata, created_at, started_at, completed_at, schema_version,
                output_encoding, steps_encoding, output, steps, event_count, attempts, durability, thread,
                cost_known_part, answered_by)
            select $1, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49,
                $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63
            from segment where $31 is not null
        )
        select count(*) from segment"
        )
    };
}

/// Takes the next position of the parent's branch; inserts nothing when it is taken.
const APPEND: &str = concat!(
    shared_parent!(),
    "segment as (
        insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        select $1, $2, $3, $4, $5, $6, $7, $8 from parent
        on conflict do nothing
        returning 1
    ), ",
    insert_all_but_segment!()
);

/// Opens a branch for a session without parent or with one that has been continued.
const OPEN: &str = concat!(
    shared_parent!(),
    "branch as (
        insert into history_branches (tenant, branch_id, parent_branch_id, parent_position)
        select $1, $2, $11, $12
        where $10 is null or exists (select from parent)
        returning 1
    ), segment as (
        insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        select $1, $2, $3, $4, $5, $6, $7, $8 from branch
        returning 1
    ), ",
    insert_all_but_segment!()
);

impl SessionWriter for PostgresStore {
    fn session_commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<Committed, CommitError>> {
        Box::pin(async move {
            let publications = Publications::make(commit).await?;
            if publications.is_plain() {
                let published = in_time(publish_alone(&self.pool, &publications)).await;
                return answer(self, publications, published).await;
            }
            let (pool, wake_ups) = (self.pool.clone(), Arc::clone(&self.wake_ups));
            let work = Box::pin(async move {
                let published = in_time(publish_all(&pool, &wake_ups, &publications)).await;
                (publications, published)
            });
            // No caller cancels it: a transaction that is given up as it begins would stay open on its connection.
            let (publications, published) = self.tasks.spawn(work).await.map_err(task_error(OPERATION))?;
            answer(self, publications, published).await
        })
    }
}

async fn publish_alone(pool: &PgPool, publications: &Publications) -> Result<Places, Refusal> {
    let mut connection = pool.acquire().await?;
    Ok(Places {
        own: publish(&mut connection, &publications.own, publications.new_run()).await?,
        children: Vec::new(),
        thread_moved: true,
    })
}

/// An error drops the transaction, which rolls it back.
async fn publish_all(pool: &PgPool, wake_ups: &QueueWakeUps, publications: &Publications) -> Result<Places, Refusal> {
    let mut transaction = pool.begin().await?;
    let settled = settle(&mut Connection::Postgres(&mut transaction), publications).await?;
    let own = publish(&mut transaction, &publications.own, publications.new_run()).await?;
    let mut children = Vec::with_capacity(publications.children.len());
    for child in &publications.children {
        children.push(publish(&mut transaction, child, None).await?);
    }
    if settled.is_next_released {
        wake_ups.commit(transaction).await?;
    } else {
        transaction.commit().await?;
    }
    Ok(Places {
        own,
        children,
        thread_moved: settled.thread_moved,
    })
}

async fn publish(
    connection: &mut PgConnection,
    publication: &Publication,
    run: Option<&NewRun>,
) -> Result<BranchPosition, Refusal> {
    let Some((parent, _)) = publication.parent else {
        return open_branch(connection, publication, run).await;
    };
    let position = publication.head.position;
    if insert(connection, APPEND, publication, run, position).await? {
        return Ok(position);
    }
    match publication.conflict {
        ConflictPolicy::Fork => open_branch(connection, publication, run).await,
        ConflictPolicy::Reject => {
            let successor = successor_statement(publication, parent).into_query();
            let successor = successor.fetch_optional(connection).await?;
            let successor = successor.as_ref().map(FromRow::from_row).transpose()?;
            Err(Refusal::of_successor(publication, successor))
        }
    }
}

async fn open_branch(
    connection: &mut PgConnection,
    publication: &Publication,
    run: Option<&NewRun>,
) -> Result<BranchPosition, Refusal> {
    if insert(connection, OPEN, publication, run, publication.fork).await? {
        Ok(publication.fork)
    } else {
        Err(Refusal::missing_base())
    }
}

/// Runs one of the two statements; tells whether it published the session.
async fn insert(
    connection: &mut PgConnection,
    statement: &'static str,
    publication: &Publication,
    run: Option<&NewRun>,
    position: BranchPosition,
) -> Result<bool, Refusal> {
    let head = &publication.head;
    let parent = publication.parent;
    let segment = &publication.segment;
    let insert = Statement::new(OPERATION, statement)
        .bind(publication.tenant.as_str())
        .bind(position.branch_id.as_uuid())
        .bind(stored_count(position.position))
        .bind(segment.first_index)
        .bind(segment.message_count)
        .bind_payload(Some(&segment.payload))
        .bind(head.session_id.as_uuid())
        .bind(parent.map(|(session_id, _)| session_id.as_uuid()))
        .bind(parent.map(|(_, place)| place.branch_id.as_uuid()))
        .bind(parent.map(|(_, place)| stored_count(place.position)))
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
        .bind_payload(publication.environment.as_ref())
        .bind_payload(publication.context.as_ref())
        .bind_run(run)
        .bind(SESSION_VERSION)
        .bind(stored_count(head.history_start))
        .bind(head.subagent_of.map(SessionId::as_uuid));
    let row = insert.into_query().fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? > 0)
}
