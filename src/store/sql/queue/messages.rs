//! Messages to runs at work.

use super::lease::is_leased;
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::record::{SteeringMessage, SteeringStatus};
use crate::store::codec::{EncodeError, encode_steering};
use crate::store::error::StoreError;
use crate::store::queue::{Lease, SteeringRecord};
use crate::store::rows::{SteeringRow, StoredTime};
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

const INSERT: &str = "insert message";
const APPLY: &str = "apply messages";

/// Keeps a message while its run is in the queue; the lock keeps the run from ending meanwhile.
pub(super) async fn message_insert<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    run_id: RunId,
    message: &SteeringMessage,
) -> Result<Option<SteeringStatus>, StoreError> {
    let payload = encode_steering(&message.message).map_err(|error: EncodeError| StoreError::Failed {
        operation: INSERT,
        source: error.into(),
    })?;
    let received_at: Timestamp = message.message.created_at;
    let statement = "insert into run_messages (
            tenant, run_id, message_key, received_at, schema_version, encoding, payload, status, position)
        select $1, $2, $3, $4, $5, $6, $7, 'received', (
            select coalesce(max(position), 0) + 1 from run_messages where tenant = $1 and run_id = $2)
        from (select 1 from run_queue where tenant = $1 and run_id = $2";
    let mut insert = Statement::new(INSERT, statement)
        .bind_run_key(tenant, run_id)
        .bind(message.key.as_str())
        .bind(StoredTime(received_at))
        .bind_payload(Some(&payload));
    insert.push(E::SHARE);
    insert.push(") queued where true on conflict (tenant, run_id, message_key) do nothing");
    if insert.execute(engine).await? > 0 {
        return Ok(Some(SteeringStatus::Received));
    }
    let statement = "select message_key, schema_version, encoding, payload, status from run_messages
        where tenant = $1 and run_id = $2 and message_key = $3";
    let row: Option<SteeringRow> = Statement::new(INSERT, statement)
        .bind_run_key(tenant, run_id)
        .bind(message.key.as_str())
        .fetch_optional(engine)
        .await?;
    row.map(|row| row.status()).transpose()
}

/// Lists the messages to a run.
pub(super) async fn run_message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Vec<SteeringRecord>, StoreError> {
    let statement = "select message_key, schema_version, encoding, payload, status from run_messages
        where tenant = $1 and run_id = $2
        order by position, received_at, message_key";
    let rows: Vec<SteeringRow> = Statement::new("list messages", statement)
        .bind_run_key(tenant, run_id)
        .fetch_all(engine)
        .await?;
    rows.into_iter().map(SteeringRecord::try_from).collect()
}

/// Notes that messages are applied.
pub(super) async fn message_apply<E: Engine>(engine: &E, lease: &Lease, keys: &[String]) -> Result<bool, StoreError> {
    if keys.is_empty() {
        return is_leased(engine, lease).await;
    }
    let (lease, keys) = (lease.clone(), keys.to_vec());
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
        return Ok(Ended::Undone(false));
    }
    for key in &keys {
        let statement = "update run_messages set status = 'applied'
            where tenant = $1 and run_id = $2 and message_key = $3 and status = 'received'";
        let update = Statement::new(APPLY, statement)
            .bind_run_key(&lease.tenant, lease.run_id)
            .bind(key.as_str());
        connection.execute(update).await?;
    }
    Ok(Ended::Kept(true))
}
