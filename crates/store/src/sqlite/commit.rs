//! Publishes sessions on SQLite, several statements for each, through the committer.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use sqlx::{FromRow, Row as _, SqliteConnection};

use super::SqliteStore;
use crate::error::{CommitError, StoreError};
use crate::publication::{OPERATION, Positions, Publication, Publications};
use crate::rows::{NewRun, Row, SessionRow, values};
use crate::sql::{
    Connection, Ended, Refusal, Statement, answer, end_run_of_commit, environment_share, insert_statement,
    run_insert_statement, successor_statement,
};
use crate::traits::{Commit, Committed, ConflictPolicy, SessionWriter};
use values::ids::SessionId;
use values::session::{BranchPosition, Hash};

#[async_trait]
impl SessionWriter for SqliteStore {
    async fn session_commit(&self, commit: &Commit) -> Result<Committed, CommitError> {
        let publications = Publications::make(commit).await?;
        let publishing = self.write(OPERATION, move |connection| {
            publish_or_undo(connection, publications).boxed()
        });
        let (publications, published) = publishing.await?;
        answer(self, publications, published).await
    }
}

type Published = (Publications, Result<Positions, Refusal>);

async fn publish_or_undo(
    connection: &mut SqliteConnection,
    mut publications: Publications,
) -> Result<Ended<Published>, StoreError> {
    let mut is_next_released = false;
    let published = publish_all(connection, &mut publications, &mut is_next_released).await;
    let is_published = published.is_ok();
    let result = (publications, published);
    Ok(match (is_published, is_next_released) {
        (false, _) => Ended::RolledBack(result),
        (true, true) => Ended::CommittedForWorkers(result),
        (true, false) => Ended::Committed(result),
    })
}

/// Publishes all sessions. Sets whether a run that waited for the thread may now begin.
async fn publish_all(
    connection: &mut SqliteConnection,
    publications: &mut Publications,
    is_next_released: &mut bool,
) -> Result<Positions, Refusal> {
    environment_share::<SqliteStore>(&mut Connection::Sqlite(connection), publications).await?;
    *is_next_released = end_run_of_commit(&mut Connection::Sqlite(connection), publications).await?;
    let run = publications.new_end().map(|end| &end.run);
    let own = publish(connection, &publications.own, run).await?;
    let mut children = Vec::with_capacity(publications.children.len());
    for child in &publications.children {
        children.push(publish(connection, child, None).await?);
    }
    Ok(Positions { own, children })
}

async fn publish(
    connection: &mut SqliteConnection,
    publication: &Publication,
    run: Option<&NewRun>,
) -> Result<BranchPosition, Refusal> {
    let position = take_position(connection, publication).await?;
    let head = &publication.head;
    if let Some(environment) = &publication.environment {
        state_insert(
            connection,
            publication,
            "environment",
            &head.environment_hash,
            environment,
        )
        .await?;
    }
    if let Some(context) = &publication.context {
        state_insert(connection, publication, "context", &head.context_hash, context).await?;
    }
    let session = SessionRow::new(head, position, &publication.metadata);
    let insert = insert_statement(
        OPERATION,
        "insert into sessions (tenant, ",
        &publication.tenant,
        &session,
    );
    execute(connection, insert).await?;
    if let Some(run) = run {
        let insert = run_insert_statement(OPERATION, &publication.tenant, run);
        if execute(connection, insert).await? == 0 {
            return Err(Refusal::recorded_run());
        }
    }
    Ok(position)
}

/// Inserts a state unless it is stored already.
async fn state_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    kind: &str,
    hash: &Hash,
    state: &(dyn Row + Sync),
) -> Result<(), sqlx::Error> {
    let values = values![&publication.tenant, hash, kind];
    let mut insert = Statement::with(OPERATION, "insert into states (tenant, hash, kind, ", values);
    insert.push_columns(state);
    insert.push(") values ($1, $2, $3, ");
    insert.push_values(state);
    insert.push(") on conflict do nothing");
    execute(connection, insert).await.map(drop)
}

/// Inserts the segment at the next position of the parent's branch. Opens a new branch if that
/// position is taken.
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
    let parent = publication.parent.map(|(_, end)| end);
    let values = values![
        &publication.tenant,
        fork.branch_id,
        parent.map(|end| end.branch_id),
        parent.map(|end| end.position)
    ];
    execute(connection, Statement::with(OPERATION, statement, values)).await?;
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
    let values = values![&publication.tenant, session_id, end.branch_id, end.position];
    let select = Statement::with(OPERATION, statement, values).into_query();
    select.fetch_one(connection).await?.try_get(0)
}

/// Inserts a segment. Returns whether its position was free.
async fn segment_insert(
    connection: &mut SqliteConnection,
    publication: &Publication,
    position: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "insert into history_segments (
            tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict do nothing";
    let segment = &publication.segment;
    let values = values![
        &publication.tenant,
        position.branch_id,
        position.position,
        segment.first_index,
        segment.message_count
    ];
    let insert = Statement::with(OPERATION, statement, values).bind_payload(&segment.payload);
    Ok(execute(connection, insert).await? > 0)
}

async fn execute(connection: &mut SqliteConnection, statement: Statement<'_>) -> Result<u64, sqlx::Error> {
    let done = statement.into_query().execute(connection).await?;
    Ok(done.rows_affected())
}
