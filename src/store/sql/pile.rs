//! Segments on their way from their rows to what is made of them: read first and then decoded, so that no connection waits for that, in
//! pieces and beside the async workers where they are large.

use std::mem::replace;

use futures_util::TryStreamExt as _;

use super::engine::{Engine, EngineRow};
use super::statement::Statement;
use crate::off_thread::by_size;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::rows::{SegmentPayloadRow, SegmentRow};
use crate::tenant::TenantId;

/// The most stored bytes that pile up: beyond it they are decoded before more is read.
pub(super) const MOST: usize = 16 << 20;
/// About how many bytes, uncompressed, are decoded at a stretch.
const PIECE: u64 = 1 << 20;

/// What is made of a segment.
type Each<S> = fn(&mut S, &SegmentRow<'_>) -> Result<(), StoreError>;

/// Reads the segments that a statement selects, and makes something of all of them.
pub(super) async fn segments_fold<S: Send + 'static>(
    engine: &impl Engine,
    tenant: &TenantId,
    select: Statement<'_>,
    mut state: S,
    each: Each<S>,
) -> Result<S, StoreError> {
    let operation = select.operation();
    let failed = store_error(operation);
    let mut pile = Pile::new(operation);
    let mut rows = engine.fetch(select);
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        if pile.stored > MOST {
            state = replace(&mut pile, Pile::new(operation))
                .fold(tenant, state, each)
                .await?;
        }
        pile.push(row)?;
    }
    // The connection goes back.
    drop(rows);
    pile.fold(tenant, state, each).await
}

/// Rows of segments.
struct Pile {
    operation: &'static str,
    /// Each with its bytes, uncompressed.
    rows: Vec<(EngineRow, u64)>,
    stored: usize,
}

impl Pile {
    fn new(operation: &'static str) -> Self {
        Self {
            operation,
            rows: Vec::new(),
            stored: 0,
        }
    }

    fn push(&mut self, row: EngineRow) -> Result<(), StoreError> {
        let payload: SegmentPayloadRow<'_> = row.read().map_err(store_error(self.operation))?;
        self.stored += payload.stored_bytes();
        let bytes = payload.bytes();
        self.rows.push((row, bytes));
        Ok(())
    }

    async fn fold<S: Send + 'static>(self, tenant: &TenantId, mut state: S, each: Each<S>) -> Result<S, StoreError> {
        let operation = self.operation;
        let mut rows = self.rows.into_iter().peekable();
        while rows.peek().is_some() {
            let (mut piece, mut sum) = (Vec::new(), 0);
            while sum < PIECE
                && let Some((row, bytes)) = rows.next()
            {
                piece.push(row);
                sum += bytes;
            }
            let work = move || {
                for row in piece {
                    each(&mut state, &row.read().map_err(store_error(operation))?)?;
                }
                Ok::<_, StoreError>(state)
            };
            state = by_size(tenant, sum, work).await?;
        }
        Ok(state)
    }
}
