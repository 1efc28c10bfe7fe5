//! Journals: the progress of executions.

use super::fence::is_leased;
use crate::ids::RunId;
use crate::off_thread::{by_size, by_size_of};
use crate::store::codec::{EncodeError, Payload, encode_journal_entry};
use crate::store::error::StoreError;
use crate::store::queue::{JournalRecord, Lease};
use crate::store::rows::{JournalRow, stored_count};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::store::weight::entry_bytes;
use crate::tenant::TenantId;

const APPEND: &str = "append to journal";

/// Appends entries with one statement. The row of the queue is shared, so nobody takes the run over
/// meanwhile. Idempotent.
pub(super) async fn journal_append<E: Engine>(
    engine: &E,
    lease: &Lease,
    entries: &[JournalRecord],
) -> Result<bool, StoreError> {
    if entries.is_empty() {
        return is_leased(engine, lease).await;
    }
    let bytes = entries.iter().map(|record| entry_bytes(&record.entry)).sum();
    let payloads = by_size_of(&lease.tenant, bytes, entries, encode).await;
    let payloads = payloads.map_err(|error| StoreError::Failed {
        operation: APPEND,
        source: error.into(),
    })?;
    let statement = "insert into run_journal (tenant, run_id, sequence, scope, schema_version, encoding, payload)
        select $1, $2, entry.column1, entry.column2, entry.column3, entry.column4, entry.column5
        from (select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let mut insert = Statement::new(APPEND, statement).bind_lease(lease);
    insert.push(E::SHARE);
    insert.push(") leased cross join (values ");
    for (index, (record, payload)) in entries.iter().zip(&payloads).enumerate() {
        insert.push_bind(if index == 0 { "(" } else { ", (" }, stored_count(record.sequence));
        insert.push_bind(", ", record.scope.as_str());
        insert.push_bind(", ", payload.schema_version);
        insert.push_bind(", ", payload.encoding);
        insert.push_bind(", ", payload.bytes.as_slice());
        insert.push(")");
    }
    insert.push(") entry where true on conflict (tenant, run_id, sequence) do nothing");
    if insert.execute(engine).await? > 0 {
        return Ok(true);
    }
    is_leased(engine, lease).await
}

/// Reads a journal.
pub(super) async fn journal_read(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Vec<JournalRecord>, StoreError> {
    let statement = "select run_id, sequence, scope, schema_version, encoding, payload from run_journal
        where tenant = $1 and run_id = $2
        order by sequence";
    let rows: Vec<JournalRow> = Statement::new("read journal", statement)
        .bind(tenant.as_str())
        .bind(run_id.as_uuid())
        .fetch_all(engine)
        .await?;
    let bytes = rows.iter().map(JournalRow::bytes).sum();
    let decode = || rows.into_iter().map(JournalRecord::try_from).collect();
    by_size(tenant, bytes, decode).await
}

fn encode(entries: &[JournalRecord]) -> Result<Vec<Payload>, EncodeError> {
    let entries = entries.iter();
    entries.map(|record| encode_journal_entry(&record.entry)).collect()
}
