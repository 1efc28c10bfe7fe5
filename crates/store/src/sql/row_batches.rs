//! Reads rows with large payloads. Decodes them in batches on other threads while it reads more
//! rows.
//!
//! The buffer of a read holds up to [`MAX_BUFFERED_BYTES`]; on SQLite, its driver reads 50 more
//! rows ahead. When the buffer is full, the read waits with its connection open. Few reads of a
//! tenant may do so (`Engine::waiting_reads`). Any other read drops its rows, drains the rest of
//! its result, waits for its turn and starts again.

use std::mem::take;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::try_join;

use super::engine::Engine;
use super::engine_row::EngineRow;
use super::statement::Statement;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::rows::PayloadRow;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::tenant::TenantId;

/// The most stored bytes of a read that wait to be decoded.
const MAX_BUFFERED_BYTES: usize = 16 << 20;
/// About the uncompressed bytes of the first batch. Each further batch is twice as large as the
/// previous one. So even a read of few rows decodes while it reads.
const FIRST_BATCH_BYTES: u64 = 2 << 10;
/// About the most uncompressed bytes of a batch.
const MAX_BATCH_BYTES: u64 = 512 << 10;

/// A result that is folded from the rows of a read, in any order.
pub(super) trait RowFold: Default + Send + 'static {
    /// A row, with the columns of a payload among others.
    type Row<'r>: FromRow<'r, PgRow> + FromRow<'r, SqliteRow>;

    /// Adds a row.
    fn push_row(&mut self, row: Self::Row<'_>) -> Result<(), StoreError>;
}

/// Reads the rows that a statement selects, and decodes all of them.
pub(super) async fn rows_fold<F: RowFold>(
    engine: &impl Engine,
    tenant: &TenantId,
    select: Statement<'_>,
) -> Result<F, StoreError> {
    let mut share = None;
    loop {
        let (buffer, batches) = unbounded_channel();
        let reading = read(engine, tenant, select.clone(), share.take(), buffer);
        let folding = fold(tenant, select.operation(), batches);
        match try_join!(reading, folding) {
            Ok(((), folded)) => return Ok(folded),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::BufferFull) => share = Some(engine.waiting_reads().take(tenant, 1).await),
        }
    }
}

/// Why an attempt ends early.
enum Stop {
    /// The buffer is full, and the tenant may not wait with an open connection now.
    BufferFull,
    Failed(StoreError),
}

#[derive(Default)]
struct RowBatch {
    rows: Vec<EngineRow>,
    stored_bytes: usize,
    /// The bytes of the payloads, uncompressed.
    bytes: u64,
}

/// A batch with its permit for a part of [`MAX_BUFFERED_BYTES`], until it is decoded.
type BufferedBatch = (RowBatch, OwnedSemaphorePermit);

/// Reads the rows into the buffer.
async fn read(
    engine: &impl Engine,
    tenant: &TenantId,
    select: Statement<'_>,
    mut share: Option<Share>,
    buffer: UnboundedSender<BufferedBatch>,
) -> Result<(), Stop> {
    let failed = store_error(select.operation());
    let stopped = |error| Stop::Failed(failed(error));
    let buffer_space = Arc::new(Semaphore::new(MAX_BUFFERED_BYTES));
    let send = async |batch: RowBatch| {
        let bytes = u32::try_from(batch.stored_bytes.min(MAX_BUFFERED_BYTES)).unwrap_or(u32::MAX);
        // Never fails: the semaphore is never closed.
        if let Ok(permit) = Arc::clone(&buffer_space).acquire_many_owned(bytes).await {
            drop(buffer.send((batch, permit)));
        }
    };
    let mut rows = engine.fetch(select);
    let mut batch = RowBatch::default();
    let mut batch_bytes = FIRST_BATCH_BYTES;
    while let Some(row) = rows.try_next().await.map_err(stopped)? {
        let payload: PayloadRow<&[u8]> = row.read().map_err(stopped)?;
        batch.stored_bytes += payload.stored().bytes.len();
        batch.bytes += payload.stored().length();
        batch.rows.push(row);
        if batch.bytes >= batch_bytes {
            let must_wait = buffer_space.available_permits() < batch.stored_bytes.min(MAX_BUFFERED_BYTES);
            if must_wait && share.is_none() {
                share = Some(engine.waiting_reads().try_take(tenant, 1).ok_or(Stop::BufferFull)?);
            }
            send(take(&mut batch)).await;
            batch_bytes = (batch_bytes * 2).min(MAX_BATCH_BYTES);
        }
    }
    // Returns the connection to the pool.
    drop((rows, share));
    send(batch).await;
    Ok(())
}

/// Decodes the batches in the buffer.
async fn fold<F: RowFold>(
    tenant: &TenantId,
    operation: &'static str,
    mut buffer: UnboundedReceiver<BufferedBatch>,
) -> Result<F, Stop> {
    let mut folded = F::default();
    while let Some((batch, permit)) = buffer.recv().await {
        let work = move || {
            for row in batch.rows {
                folded.push_row(row.read().map_err(store_error(operation))?)?;
            }
            drop(permit);
            Ok::<_, StoreError>(folded)
        };
        folded = by_size(tenant, batch.bytes, work).await.map_err(Stop::Failed)?;
    }
    Ok(folded)
}
