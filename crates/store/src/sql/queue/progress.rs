//! The progress of queued runs: their events, several per row, their journals and their usage.
//!
//! Each write locks the row of the queue in share mode, so that no other worker takes the run over
//! meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;

use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::new_progress::NewProgress;
use crate::queue::{JournalRecord, Lease, ProgressStore};
use crate::rows::{EventsRow, JournalRow, values};
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use agent::record::{RunEvent, RunStatus};
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::tenant::TenantId;
use values::usage::{Cost, Usage};

const READ_EVENTS: &str = "read events";
/// About the most bytes of events that one read returns. A single row may be larger.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Of two rows with the same first event, retains the longer one, since a write may be repeated
/// with more events.
macro_rules! events_conflict {
    () => {
        " on conflict (tenant, run_id, first_sequence) do update set
            last_sequence = excluded.last_sequence, schema_version = excluded.schema_version,
            encoding = excluded.encoding, payload = excluded.payload
        where excluded.last_sequence > run_events.last_sequence"
    };
}
pub(crate) use events_conflict;

#[async_trait]
impl<E: Engine> ProgressStore for E {
    async fn progress_append(
        &self,
        lease: &Lease,
        entries: &[JournalRecord],
        events: &[Arc<RunEvent>],
    ) -> Result<bool, StoreError> {
        let progress = NewProgress::make(lease, entries, events).await?;
        self.progress_insert(progress).await
    }

    async fn journal_read(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<JournalRecord>, StoreError> {
        let statement = "select run_id, sequence, scope, tree, schema_version, encoding, payload from run_journal
            where tenant = $1 and run_id = $2
            order by sequence";
        let select = Statement::with("read journal", statement, values![tenant, run_id]);
        let rows: Vec<JournalRow> = select.fetch_all(self).await?;
        let bytes = rows.iter().map(JournalRow::bytes).sum();
        let decode = || rows.into_iter().map(JournalRecord::try_from).collect();
        by_size(tenant, bytes, decode).await
    }

    async fn event_read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Arc<RunEvent>>, StoreError> {
        let limit = limit.max(1);
        let statement = "select run_id, last_sequence, schema_version, encoding, payload from run_events
            where tenant = $1 and run_id = $2 and last_sequence > $3
            order by first_sequence
            limit $4";
        let select = Statement::with(READ_EVENTS, statement, values![tenant, run_id, after, limit]);
        let (rows, bytes) = read_rows(self, select, after.saturating_add(u64::from(limit))).await?;
        by_size(tenant, bytes, move || decode_rows(rows, after)).await
    }

    async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError> {
        let statement = "select last_sequence from run_events where tenant = $1 and run_id = $2
            order by first_sequence desc
            limit 1";
        let select = Statement::with(READ_EVENTS, statement, values![tenant, run_id]);
        let row: Option<(i64,)> = select.fetch_optional(self).await?;
        Ok(row.map_or(0, |(last,)| last.unsigned_abs()))
    }

    /// Never changes a final record, even if this statement waited for the transaction that ended
    /// the run.
    async fn usage_update(&self, lease: &Lease, usage: &Usage) -> Result<bool, StoreError> {
        let statement = "update runs set
                input_tokens = $4, output_tokens = $5, cache_read_tokens = $6, cache_write_tokens = $7,
                reasoning_tokens = $8, total_tokens = $9, cost = $10, cost_known_part = $11
            where tenant = $1 and run_id = $2 and status = $12
                and exists (select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
        let values = values![
            &lease.tenant,
            lease.run_id,
            lease.fence,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
            usage.total_tokens,
            usage.cost.map(Cost::dollars),
            usage.cost_known_part.map(Cost::dollars),
            RunStatus::Running.as_str()
        ];
        let mut update = Statement::with("update usage", statement, values);
        update.push(E::SHARE);
        update.push(")");
        // Never fails: the semaphore is never closed.
        let _permit = self.progress_writes().acquire().await;
        Ok(update.execute(self).await? > 0)
    }
}

/// Reads rows up to the one with the last event, or until they have [`MAX_READ_BYTES`]. Also
/// returns their size in bytes.
async fn read_rows(
    engine: &impl Engine,
    select: Statement<'_>,
    last: u64,
) -> Result<(Vec<EventsRow>, u64), StoreError> {
    let failed = store_error(READ_EVENTS);
    let mut found = engine.fetch(select);
    let mut rows: Vec<EventsRow> = Vec::new();
    let mut bytes = 0;
    while bytes < MAX_READ_BYTES
        && rows.last().is_none_or(|row| row.last_sequence() < last)
        && let Some(row) = found.try_next().await.map_err(&failed)?
    {
        let row: EventsRow = row.read().map_err(&failed)?;
        bytes += row.bytes();
        rows.push(row);
    }
    Ok((rows, bytes))
}

fn decode_rows(rows: Vec<EventsRow>, after: u64) -> Result<Vec<Arc<RunEvent>>, StoreError> {
    let mut events: Vec<Arc<RunEvent>> = Vec::new();
    for row in rows {
        for event in Vec::try_from(row)? {
            let event: Arc<RunEvent> = event;
            // Rows overlap if a write whose response was lost was repeated.
            if event.sequence > events.last().map_or(after, |last| last.sequence) {
                events.push(event);
            }
        }
    }
    Ok(events)
}
