//! Publishes sessions on PostgreSQL. Each session takes one statement, which is atomic. A
//! transaction is needed only if the run was queued, publishes subagents' sessions or sends
//! webhooks.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{FromRow, PgConnection, PgPool, Row as _};
use tracing::Instrument as _;

use super::PostgresStore;
use super::timeouts::in_time;
use super::wake_ups::QueueWakeUps;
use crate::session::{BranchPosition, Hash};
use crate::store::error::{CommitError, StoreError};
use crate::store::publication::{OPERATION, Positions, Publication, Publications};
use crate::store::rows::{NewRun, Row, SessionRow, values};
use crate::store::sql::{Connection, Refusal, Statement, answer, environment_share, settle, successor_statement};
use crate::store::traits::{Commit, Committed, ConflictPolicy, SessionWriter};

/// Finds the parent. Locks its row in share mode, so that no removal deletes it before the
/// transaction has ended.
const PARENT: &str = "with parent as (
        select 1 from sessions
        where tenant = $1 and session_id = $9 and branch_id = $10 and position = $11
        for share
    ), ";

/// Takes the next position of the parent's branch. Inserts nothing if the position is taken.
const APPEND: &str = "segment as (
        insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        select $1, $2, $3, $4, $5, $6, $7, $8 from parent
        on conflict do nothing
        returning 1
    )";

/// Opens a branch for a session without a parent, or whose parent is already continued.
const OPEN: &str = "branch as (
        insert into history_branches (tenant, branch_id, parent_branch_id, parent_position)
        select $1, $2, $10, $11
        where $9 is null or exists (select from parent)
        returning 1
    ), segment as (
        insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        select $1, $2, $3, $4, $5, $6, $7, $8 from branch
        returning 1
    )";

#[async_trait]
impl SessionWriter for PostgresStore {
    async fn session_commit(&self, commit: &Commit) -> Result<Committed, CommitError> {
        let mut publications = Publications::make(commit).await?;
        if publications.is_plain() {
            let published = in_time(publish_alone(&self.pool, &publications)).await;
            return answer(self, publications, published).await;
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

async fn publish_alone(pool: &PgPool, publications: &Publications) -> Result<Positions, Refusal> {
    let mut connection = pool.acquire().await?;
    Ok(Positions {
        own: publish(&mut connection, &publications.own, publications.new_run()).await?,
        children: Vec::new(),
        thread_moved: true,
    })
}

/// An error drops the transaction, which rolls it back.
async fn publish_all(
    pool: &PgPool,
    wake_ups: &QueueWakeUps,
    publications: &mut Publications,
) -> Result<Positions, Refusal> {
    let mut transaction = pool.begin().await?;
    environment_share::<PostgresStore>(&mut Connection::Postgres(&mut transaction), publications).await?;
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
    Ok(Positions {
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

/// Publishes a session with one statement, which begins with [`APPEND`] or [`OPEN`]. Returns
/// whether it was published. The statement inserts the other rows only if it inserts the segment.
async fn insert(
    connection: &mut PgConnection,
    segment_insert: &'static str,
    publication: &Publication,
    run: Option<&NewRun>,
    position: BranchPosition,
) -> Result<bool, Refusal> {
    let head = &publication.head;
    let parent = publication.parent;
    let session = SessionRow::new(head, position, &publication.metadata);
    let segment = &publication.segment;
    let values = values![
        &publication.tenant,
        position.branch_id,
        position.position,
        segment.first_index,
        segment.message_count
    ];
    let mut insert = Statement::with(OPERATION, PARENT, values)
        .bind_payload(&segment.payload)
        .bind(parent.map(|(session_id, _)| session_id))
        .bind(parent.map(|(_, end)| end.branch_id))
        .bind(parent.map(|(_, end)| end.position));
    insert.push(segment_insert);
    if let Some(environment) = &publication.environment {
        push_state_insert(&mut insert, ENVIRONMENT, &head.environment_hash, environment);
    }
    if let Some(context) = &publication.context {
        push_state_insert(&mut insert, CONTEXT, &head.context_hash, context);
    }
    insert.push(", session as (insert into sessions (tenant, ");
    insert.push_columns(&session);
    insert.push(") select $1, ");
    insert.push_values(&session);
    insert.push(" from segment)");
    if let Some(run) = run {
        insert.push(", run as (insert into runs (tenant, ");
        insert.push_columns(run);
        insert.push(") select $1, ");
        insert.push_values(run);
        insert.push(" from segment)");
    }
    insert.push(" select count(*) from segment");
    let row = insert.into_query().fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? > 0)
}

/// Inserts a state unless it is stored already. Locks the row of a stored state, so that no removal
/// deletes it. If the statement sees the row, the lock is shared with other commits. If another
/// commit inserts the state at the same moment, `on conflict` locks the row.
fn push_state_insert<'v>(
    insert: &mut Statement<'v>,
    [find, begin, end]: [&'static str; 3],
    hash: &'v Hash,
    state: &'v dyn Row,
) {
    insert.push_bind(find, hash);
    insert.push_bind(begin, hash);
    insert.push(", ");
    insert.push_values(state);
    insert.push(end);
}

/// The text parts that insert a state: up to the hash to find, up to the hash to insert, and after
/// its other columns.
macro_rules! state_insert {
    ($kind:literal, $columns:literal) => {
        [
            concat!(
                ", stored_",
                $kind,
                " as (select 1 from states where tenant = $1 and hash = "
            ),
            concat!(
                " for key share), ",
                $kind,
                " as (
                    insert into states (tenant, kind, hash, ",
                $columns,
                ")
                    select $1, '",
                $kind,
                "', "
            ),
            concat!(
                " from segment where not exists (select from stored_",
                $kind,
                ")
                    on conflict (tenant, hash) do update set kind = excluded.kind where false)"
            ),
        ]
    };
}

const ENVIRONMENT: [&str; 3] = state_insert!("environment", "tree, schema_version, encoding, payload");
const CONTEXT: [&str; 3] = state_insert!("context", "schema_version, encoding, payload");
