//! Messages to active runs.

use super::fence::is_leased;
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, SteeringMessage, SteeringStatus};
use crate::store::codec::{EncodeError, Payload, encode_steering};
use crate::store::error::StoreError;
use crate::store::queue::{Lease, MessagePut, SteeringRecord};
use crate::store::rows::{SteeringRow, StoredTime, stored_count};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

const INSERT: &str = "insert message";
const APPLY: &str = "apply messages";

/// Stores a message while its run is in the queue. The row is locked, so the run can't end
/// meanwhile, and other messages wait.
pub(super) async fn message_insert<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    run_id: RunId,
    message: &SteeringMessage,
) -> Result<MessagePut, StoreError> {
    let payload = encode_steering(&message.message).map_err(|error: EncodeError| StoreError::Failed {
        operation: INSERT,
        source: error.into(),
    })?;
    let new = NewMessage {
        tenant: tenant.clone(),
        run_id,
        key: message.key.clone(),
        received_at: message.message.created_at,
        size: stored_count(message.size() as u64),
        payload,
    };
    let is_queued = match engine
        .transact(INSERT, move |connection| {
            Box::pin(insert_in_txn(connection, new, E::LOCK))
        })
        .await?
    {
        Insertion::Stored => return Ok(MessagePut::Known(SteeringStatus::Received)),
        Insertion::Refused { is_queued } => is_queued,
    };
    let statement = "select message_key, schema_version, encoding, payload, status from run_messages
        where tenant = $1 and run_id = $2 and message_key = $3";
    let row: Option<SteeringRow> = Statement::new(INSERT, statement)
        .bind_run_key(tenant, run_id)
        .bind(message.key.as_str())
        .fetch_optional(engine)
        .await?;
    Ok(match row {
        Some(row) => MessagePut::Known(row.status()?),
        None if is_queued => MessagePut::Full,
        None => MessagePut::NoRun,
    })
}

/// An encoded message.
struct NewMessage {
    tenant: TenantId,
    run_id: RunId,
    key: String,
    received_at: Timestamp,
    size: i64,
    payload: Payload,
}

enum Insertion {
    Stored,
    /// One of its key exists, or the run has its limit of messages, or the run is not in the queue.
    Refused {
        is_queued: bool,
    },
}

async fn insert_in_txn(
    mut connection: Connection<'_>,
    new: NewMessage,
    lock: &'static str,
) -> Result<Ended<Insertion>, sqlx::Error> {
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2";
    let mut select = Statement::new(INSERT, statement).bind_run_key(&new.tenant, new.run_id);
    select.push(lock);
    let queued: Option<(i32,)> = connection.fetch_optional(select).await?;
    if queued.is_none() {
        return Ok(Ended::RolledBack(Insertion::Refused { is_queued: false }));
    }
    // A statement of its own, so that it sees what others inserted before it got the lock.
    let statement = "insert into run_messages (
            tenant, run_id, message_key, received_at, schema_version, encoding, payload, size, status, position)
        select $1, $2, $3, $4, $5, $6, $7, $8, 'received', existing.position + 1
        from (
            select count(*) as count, coalesce(sum(size), 0) as size, coalesce(max(position), 0) as position
            from run_messages where tenant = $1 and run_id = $2
        ) existing
        where existing.count < $9 and existing.size + $8 <= $10
        on conflict (tenant, run_id, message_key) do nothing";
    let insert = Statement::new(INSERT, statement)
        .bind_run_key(&new.tenant, new.run_id)
        .bind(new.key.as_str())
        .bind(StoredTime(new.received_at))
        .bind_payload(&new.payload)
        .bind(new.size)
        .bind(stored_count(MAX_RUN_MESSAGES as u64))
        .bind(stored_count(MAX_RUN_MESSAGES_BYTES as u64));
    Ok(if connection.execute(insert).await? > 0 {
        Ended::Committed(Insertion::Stored)
    } else {
        Ended::RolledBack(Insertion::Refused { is_queued: true })
    })
}

/// Begins a list of messages.
macro_rules! message_list {
    ($condition:literal) => {
        concat!(
            "select message_key, schema_version, encoding, payload, status from run_messages
            where tenant = $1 and run_id = $2",
            $condition,
            " order by position"
        )
    };
}

/// Lists the messages to a run.
pub(super) async fn run_message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Vec<SteeringRecord>, StoreError> {
    let rows: Vec<SteeringRow> = Statement::new("list messages", message_list!(""))
        .bind_run_key(tenant, run_id)
        .fetch_all(engine)
        .await?;
    rows.into_iter().map(SteeringRecord::try_from).collect()
}

/// Lists the messages to a run that are not applied.
pub(super) async fn waiting_message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Vec<SteeringMessage>, StoreError> {
    let rows: Vec<SteeringRow> = Statement::new("list waiting messages", message_list!(" and status = 'received'"))
        .bind_run_key(tenant, run_id)
        .fetch_all(engine)
        .await?;
    let records = rows.into_iter().map(SteeringRecord::try_from);
    records.map(|record| record.map(|record| record.message)).collect()
}

/// Marks messages as applied.
pub(super) async fn message_apply<E: Engine>(engine: &E, lease: &Lease, keys: &[String]) -> Result<bool, StoreError> {
    if keys.is_empty() {
        return is_leased(engine, lease).await;
    }
    let (lease, keys) = (lease.clone(), keys.to_vec());
    // The semaphore is never closed.
    let _permit = engine.progress_writes().acquire().await;
    engine
        .transact(APPLY, move |connection| {
            Box::pin(apply_in_txn(connection, lease, keys, E::SHARE))
        })
        .await
}

async fn apply_in_txn(
    mut connection: Connection<'_>,
    lease: Lease,
    keys: Vec<String>,
    share: &'static str,
) -> Result<Ended<bool>, sqlx::Error> {
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let mut select = Statement::new(APPLY, statement).bind_lease(&lease);
    select.push(share);
    let leased: Option<(i32,)> = connection.fetch_optional(select).await?;
    if leased.is_none() {
        return Ok(Ended::RolledBack(false));
    }
    apply_on_conn(&mut connection, &lease.tenant, lease.run_id, &keys).await?;
    Ok(Ended::Committed(true))
}

/// Marks messages as applied, inside a transaction that holds the lease or has just ended the run.
pub(super) async fn apply_on_conn(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    run_id: RunId,
    keys: &[String],
) -> Result<(), sqlx::Error> {
    for key in keys {
        let statement = "update run_messages set status = 'applied'
            where tenant = $1 and run_id = $2 and message_key = $3 and status = 'received'";
        let update = Statement::new(APPLY, statement)
            .bind_run_key(tenant, run_id)
            .bind(key.as_str());
        connection.execute(update).await?;
    }
    Ok(())
}
