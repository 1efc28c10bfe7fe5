//! Events of queued runs, several per row.

use std::sync::Arc;

use futures_util::TryStreamExt as _;

use super::fence::is_leased;
use crate::ids::RunId;
use crate::off_thread::by_size;
use crate::record::RunEvent;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::new_end::NewEvents;
use crate::store::queue::Lease;
use crate::store::rows::{EventsRow, stored_count};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

const APPEND: &str = "append events";
const READ: &str = "read events";
/// About how many bytes of events one read returns, but for a row that is larger.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Of two rows with the same first event, retains the longer one: an attempt may be repeated with
/// more events.
macro_rules! events_conflict {
    () => {
        " on conflict (tenant, run_id, first_sequence) do update set
            last_sequence = excluded.last_sequence, schema_version = excluded.schema_version,
            encoding = excluded.encoding, payload = excluded.payload
        where excluded.last_sequence > run_events.last_sequence"
    };
}
pub(super) use events_conflict;

/// Appends events with one statement. The row of the queue is shared, so nobody takes the run over
/// meanwhile. Idempotent.
pub(super) async fn event_append<E: Engine>(
    engine: &E,
    lease: &Lease,
    events: &[Arc<RunEvent>],
) -> Result<bool, StoreError> {
    let new = NewEvents::make(&lease.tenant, events)
        .await
        .map_err(|error| StoreError::Failed {
            operation: APPEND,
            source: error.into(),
        })?;
    let Some(new) = new else {
        return is_leased(engine, lease).await;
    };
    let statement = "insert into run_events (
            tenant, run_id, first_sequence, last_sequence, created_at, schema_version, encoding, payload)
        select $1, $2, $4, $5, $6, $7, $8, $9
        from (select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let mut insert = Statement::new(APPEND, statement).bind_lease(lease).bind_events(&new);
    insert.push(E::SHARE);
    insert.push(concat!(") leased where true", events_conflict!()));
    // The semaphore is never closed.
    let _permit = engine.progress_writes().acquire().await;
    if insert.execute(engine).await? > 0 {
        return Ok(true);
    }
    is_leased(engine, lease).await
}

/// Reads events in order, no more rows than needed.
pub(super) async fn event_read(
    engine: &impl Engine,
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
    let select = Statement::new(READ, statement)
        .bind_run_key(tenant, run_id)
        .bind(stored_count(after))
        .bind(i64::from(limit));
    let (rows, bytes) = read_rows(engine, select, after.saturating_add(u64::from(limit))).await?;
    by_size(tenant, bytes, move || decode_rows(rows, after)).await
}

/// Reads rows up to the one with the last event, or until they have [`MAX_READ_BYTES`]; also
/// returns their bytes.
async fn read_rows(
    engine: &impl Engine,
    select: Statement<'_>,
    last: u64,
) -> Result<(Vec<EventsRow>, u64), StoreError> {
    let failed = store_error(READ);
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
            // Rows overlap if an attempt was repeated whose response was lost.
            if event.sequence > events.last().map_or(after, |last| last.sequence) {
                events.push(event);
            }
        }
    }
    Ok(events)
}

/// Returns the number of the last event.
pub(super) async fn event_last(engine: &impl Engine, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError> {
    let statement = "select last_sequence from run_events where tenant = $1 and run_id = $2
        order by first_sequence desc
        limit 1";
    let row: Option<(i64,)> = Statement::new(READ, statement)
        .bind_run_key(tenant, run_id)
        .fetch_optional(engine)
        .await?;
    Ok(row.map_or(0, |(last,)| last.unsigned_abs()))
}

impl<'v> Statement<'v> {
    /// Binds the values of a row of events but for its run.
    pub(crate) fn bind_events(self, events: &'v NewEvents) -> Self {
        self.bind(events.first)
            .bind(events.last)
            .bind(events.created_at)
            .bind_payload(&events.payload)
    }
}
