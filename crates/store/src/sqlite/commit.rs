//! Inserts sessions and ends their runs on SQLite, with several statements for each.

use super::SqliteStore;
use crate::new_commit::{NewSession, OPERATION};
use crate::new_end::NewEnd;
use crate::rows::{LeaseKey, Row, SessionRow, values};
use crate::sessions::ConflictPolicy;
use crate::sql::{
    Connection, Refusal, Statement, events_insert, insert_statement, queue_leave, run_insert, settle_on_conn,
};
use values::ids::SessionId;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// Inserts a session and ends its run, inside a transaction.
pub(super) async fn session_insert_on_conn(
    connection: &mut Connection<'_>,
    session: &NewSession,
    end: Option<&NewEnd>,
) -> Result<BranchPosition, Refusal> {
    let position = take_position(connection, session).await?;
    let head = &session.head;
    if let Some(environment) = &session.environment {
        state_insert(connection, session, "environment", &head.environment_hash, environment).await?;
    }
    if let Some(context) = &session.context {
        state_insert(connection, session, "context", &head.context_hash, context).await?;
    }
    let row = SessionRow::new(head, position, &session.metadata);
    let insert = insert_statement(OPERATION, "insert into sessions (tenant, ", &session.tenant, &row);
    connection.execute(insert).await?;
    if let Some(end) = end {
        let tenant = &session.tenant;
        let is_ended = if let Some(lease) = &end.lease {
            run_end_on_conn(connection, tenant, lease, end).await?;
            true
        } else {
            run_insert::<SqliteStore>(connection, tenant, end).await?
        };
        if !is_ended {
            return Err(Refusal::recorded_run());
        }
    }
    Ok(position)
}

/// Ends a run of the queue, inside a transaction.
pub(super) async fn run_end_on_conn(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    lease: &LeaseKey,
    end: &NewEnd,
) -> Result<(), sqlx::Error> {
    queue_leave(connection, lease, !end.is_without_session()).await?;
    let mut update = Statement::with(OPERATION, "update runs set ", values![tenant, lease.run_id]);
    update.push_assignments(&end.run, "run_id");
    update.push(" where tenant = $1 and run_id = $2");
    if connection.execute(update).await? == 0 {
        // A run in the queue always has a record.
        return Err(sqlx::Error::RowNotFound);
    }
    if let Some(settlement) = &end.settlement {
        settle_on_conn::<SqliteStore>(connection, tenant, lease.run_id, settlement.spent).await?;
    }
    events_insert(connection, tenant, end).await
}

/// Inserts a state unless it is stored already.
async fn state_insert(
    connection: &mut Connection<'_>,
    session: &NewSession,
    kind: &str,
    hash: &Hash,
    state: &(dyn Row + Sync),
) -> Result<(), sqlx::Error> {
    let values = values![&session.tenant, hash, kind];
    let mut insert = Statement::with(OPERATION, "insert into states (tenant, hash, kind, ", values);
    insert.push_columns(state);
    insert.push(") values ($1, $2, $3, ");
    insert.push_values(state);
    insert.push(") on conflict do nothing");
    connection.execute(insert).await.map(drop)
}

/// Inserts the segment at the next position of the parent's branch. Opens a new branch if that
/// position is taken.
async fn take_position(connection: &mut Connection<'_>, session: &NewSession) -> Result<BranchPosition, Refusal> {
    if let Some((parent, end)) = session.parent {
        if !session_stands_at(connection, session, parent, end).await? {
            return Err(Refusal::missing_base());
        }
        let position = session.head.position;
        if segment_insert(connection, session, position).await? {
            return Ok(position);
        }
        if session.conflict == ConflictPolicy::Reject {
            return Err(Refusal::of_append(connection, session, parent).await?);
        }
    }
    let fork = session.fork;
    let statement = "insert into history_branches (tenant, branch_id, parent_branch_id, parent_position)
        values ($1, $2, $3, $4)";
    let parent = session.parent.map(|(_, end)| end);
    let values = values![
        &session.tenant,
        fork.branch_id,
        parent.map(|end| end.branch_id),
        parent.map(|end| end.position)
    ];
    connection
        .execute(Statement::with(OPERATION, statement, values))
        .await?;
    segment_insert(connection, session, fork).await?;
    Ok(fork)
}

async fn session_stands_at(
    connection: &mut Connection<'_>,
    session: &NewSession,
    session_id: SessionId,
    end: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "select 1 from sessions where tenant = $1 and session_id = $2 and branch_id = $3 and position = $4";
    let values = values![&session.tenant, session_id, end.branch_id, end.position];
    let select = Statement::with(OPERATION, statement, values);
    let found: Option<(i32,)> = connection.fetch_optional(select).await?;
    Ok(found.is_some())
}

/// Inserts a segment. Returns whether its position was free.
async fn segment_insert(
    connection: &mut Connection<'_>,
    session: &NewSession,
    position: BranchPosition,
) -> Result<bool, sqlx::Error> {
    let statement = "insert into history_segments (
            tenant, branch_id, session_id, position, first_index, message_count, schema_version, encoding, payload)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        on conflict do nothing";
    let segment = &session.segment;
    let values = values![
        &session.tenant,
        position.branch_id,
        session.head.session_id,
        position.position,
        segment.first_index,
        segment.message_count
    ];
    let insert = Statement::with(OPERATION, statement, values).bind_payload(&segment.payload);
    Ok(connection.execute(insert).await? > 0)
}
