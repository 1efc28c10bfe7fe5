//! Messages to active runs.

use async_trait::async_trait;

use super::fence::{is_leased, is_leased_on_conn};
use crate::codec::encode_steering;
use crate::error::StoreError;
use crate::queue::{Lease, MessagePut, MessageStore, SteeringRecord};
use crate::rows::{LeaseKey, SteeringRow, values};
use crate::sql::connection::{Connection, Ended};
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use agent::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, SteeringMessage, SteeringStatus};
use values::ids::RunId;
use values::tenant::TenantId;

const INSERT: &str = "insert message";
const APPLY: &str = "apply messages";

#[derive(Clone, Copy)]
enum Insertion {
    Stored,
    /// A message with its key exists, or the run has reached its limit of messages.
    Refused,
    /// The run is not in the queue.
    NoRun,
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

#[async_trait]
impl<E: Engine> MessageStore for E {
    /// Locks the row of the queue, so that the run can't end meanwhile and other messages wait.
    async fn message_insert(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        message: &SteeringMessage,
    ) -> Result<MessagePut, StoreError> {
        let payload = encode_steering(&message.message).map_err(StoreError::failed(INSERT))?;
        let (owner, key) = (tenant.clone(), message.key.clone());
        let (received_at, size) = (message.message.created_at, message.size() as u64);
        let inserting = self.transact(INSERT, move |mut connection| {
            Box::pin(async move {
                let statement = "select 1 from run_queue where tenant = $1 and run_id = $2";
                let mut select = Statement::with(INSERT, statement, values![&owner, run_id]);
                select.push(E::LOCK);
                let queued: Option<(i32,)> = connection.fetch_optional(select).await?;
                if queued.is_none() {
                    return Ok(Ended::RolledBack(Insertion::NoRun));
                }
                // A separate statement, so that it sees the messages of requests that held the lock
                // before.
                let insert = Statement::with(INSERT, MESSAGE_INSERT, values![&owner, run_id, &key, received_at])
                    .bind_payload(&payload)
                    .bind(size)
                    .bind(MAX_RUN_MESSAGES as u64)
                    .bind(MAX_RUN_MESSAGES_BYTES as u64);
                Ok(if connection.execute(insert).await? > 0 {
                    Ended::Committed(Insertion::Stored)
                } else {
                    Ended::RolledBack(Insertion::Refused)
                })
            })
        });
        let insertion = inserting.await?;
        if matches!(insertion, Insertion::Stored) {
            return Ok(MessagePut::Known(SteeringStatus::Received));
        }
        let statement = "select message_key, schema_version, encoding, payload, status from run_messages
            where tenant = $1 and run_id = $2 and message_key = $3";
        let select = Statement::with(INSERT, statement, values![tenant, run_id, &message.key]);
        let row: Option<SteeringRow> = select.fetch_optional(self).await?;
        Ok(match (row, insertion) {
            // The end of the run may not have seen a message that was stored at the same moment.
            (Some(row), Insertion::NoRun) => MessagePut::Known(row.status()?.after_end()),
            (Some(row), _) => MessagePut::Known(row.status()?),
            (None, Insertion::NoRun) => MessagePut::NoRun,
            (None, Insertion::Refused | Insertion::Stored) => MessagePut::Full,
        })
    }

    async fn run_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringRecord>, StoreError> {
        let select = Statement::with("list messages", message_list!(""), values![tenant, run_id]);
        select.list::<SteeringRow, _>(self).await
    }

    async fn waiting_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringMessage>, StoreError> {
        let statement = message_list!(" and status = 'received'");
        let select = Statement::with("list waiting messages", statement, values![tenant, run_id]);
        let records: Vec<SteeringRecord> = select.list::<SteeringRow, _>(self).await?;
        Ok(records.into_iter().map(|record| record.message).collect())
    }

    async fn message_apply(&self, lease: &Lease, keys: &[String]) -> Result<bool, StoreError> {
        if keys.is_empty() {
            return is_leased(self, lease).await;
        }
        let (lease, keys) = (LeaseKey::from(lease), keys.to_vec());
        // Never fails: the semaphore is never closed.
        let _permit = self.progress_writes().acquire().await;
        let applying = self.transact(APPLY, move |mut connection| {
            Box::pin(async move {
                if !is_leased_on_conn(&mut connection, APPLY, &lease, E::SHARE).await? {
                    return Ok(Ended::RolledBack(false));
                }
                apply_on_conn(&mut connection, &lease, &keys).await?;
                Ok(Ended::Committed(true))
            })
        });
        applying.await
    }
}

const MESSAGE_INSERT: &str = "insert into run_messages (
        tenant, run_id, message_key, received_at, schema_version, encoding, payload, size, status, position)
    select $1, $2, $3, $4, $5, $6, $7, $8, 'received', existing.position + 1
    from (
        select count(*) as count, coalesce(sum(size), 0) as size, coalesce(max(position), 0) as position
        from run_messages where tenant = $1 and run_id = $2
    ) existing
    where existing.count < $9 and existing.size + $8 <= $10
    on conflict (tenant, run_id, message_key) do nothing";

/// Marks messages as applied, inside a transaction that holds the lease or has just ended the run,
/// whose waiting messages are too late by then.
pub(super) async fn apply_on_conn(
    connection: &mut Connection<'_>,
    lease: &LeaseKey,
    keys: &[String],
) -> Result<(), sqlx::Error> {
    for key in keys {
        let statement =
            "update run_messages set status = 'applied' where tenant = $1 and run_id = $2 and message_key = $3";
        let update = Statement::with(APPLY, statement, values![&lease.tenant, lease.run_id, key]);
        connection.execute(update).await?;
    }
    Ok(())
}
