//! Segments on their way from their rows to what is made of them: in pieces, beside the async workers where they are large. Reading goes on
//! while they are decoded, so that no connection waits for that.

use std::mem::take;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::try_join;

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
    state: S,
    each: Each<S>,
) -> Result<S, StoreError> {
    let operation = select.operation();
    let (pile, pieces) = unbounded_channel();
    let reading = read(engine, select, pile);
    let folding = fold(tenant, operation, pieces, state, each);
    let ((), state) = try_join!(reading, folding)?;
    Ok(state)
}

/// Rows of segments.
#[derive(Default)]
struct Piece {
    rows: Vec<EngineRow>,
    stored: usize,
    /// The bytes of the segments, uncompressed.
    bytes: u64,
}

/// A piece with its share of [`MOST`], until it is decoded.
type PiledPiece = (Piece, OwnedSemaphorePermit);

/// Reads the rows onto the pile.
async fn read(
    engine: &impl Engine,
    select: Statement<'_>,
    pile: UnboundedSender<PiledPiece>,
) -> Result<(), StoreError> {
    let failed = store_error(select.operation());
    let room = Arc::new(Semaphore::new(MOST));
    let put = async |piece: Piece| {
        let share = u32::try_from(piece.stored.min(MOST)).unwrap_or(u32::MAX);
        // Neither is ever closed while rows are read.
        if let Ok(share) = Arc::clone(&room).acquire_many_owned(share).await {
            drop(pile.send((piece, share)));
        }
    };
    let mut rows = engine.fetch(select);
    let mut piece = Piece::default();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let payload: SegmentPayloadRow<'_> = row.read().map_err(&failed)?;
        piece.stored += payload.stored_bytes();
        piece.bytes += payload.bytes();
        piece.rows.push(row);
        if piece.bytes >= PIECE {
            put(take(&mut piece)).await;
        }
    }
    // The connection goes back.
    drop(rows);
    put(piece).await;
    Ok(())
}

/// Makes something of what is on the pile.
async fn fold<S: Send + 'static>(
    tenant: &TenantId,
    operation: &'static str,
    mut pile: UnboundedReceiver<PiledPiece>,
    mut state: S,
    each: Each<S>,
) -> Result<S, StoreError> {
    while let Some((piece, share)) = pile.recv().await {
        let work = move || {
            for row in piece.rows {
                each(&mut state, &row.read().map_err(store_error(operation))?)?;
            }
            drop(share);
            Ok::<_, StoreError>(state)
        };
        state = by_size(tenant, piece.bytes, work).await?;
    }
    Ok(state)
}
