//! Verification: four statements at any depth, and one more if ancestors were removed. Payloads are
//! checked in [batches](super::row_batches).

use super::columns::{ancestors, line_to_position};
use super::engine::Engine;
use super::lists::has_gap;
use super::row_batches::{RowFold, rows_fold};
use super::session_lookup::position_lookup;
use super::statement::Statement;
use super::text::sql;
use crate::ids::SessionId;
use crate::session::SessionHead;
use crate::store::error::StoreError;
use crate::store::retention::Ancestor;
use crate::store::rows::{RemovedSessionRow, SegmentRow, SessionRow, StateRow};
use crate::store::traits::VerifyReport;
use crate::store::verification::{SegmentCheck, StateCheck, Verification};
use crate::tenant::TenantId;

const SEGMENTS: &str = concat!(
    "with recursive ",
    line_to_position!(),
    " select h.branch_id, h.position, h.first_index, h.message_count, h.schema_version, h.encoding, h.payload
    from line
    join history_segments h on h.tenant = $1 and h.branch_id = line.branch_id and h.position <= line.last_position"
);

const STATES: &str = concat!(
    ancestors!(""),
    ", retained as (
        select s.environment_hash, s.context_hash
        from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    )
    select hash, kind, schema_version, encoding, payload from states
    where tenant = $1 and hash in (select environment_hash from retained union select context_hash from retained)"
);

const HEADS: &str = sql!(
    ancestors!(""),
    " select ",
    SessionRow::COLUMNS,
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by s.depth desc"
);

const REMOVED: &str = sql!(
    ancestors!(""),
    " select ",
    RemovedSessionRow::COLUMNS,
    " from ancestor join removed_sessions x on x.tenant = $1 and x.session_id = ancestor.session_id"
);

/// Computes all hashes of a line again.
pub(super) async fn session_verify(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<VerifyReport>, StoreError> {
    const OPERATION: &str = "verify session";
    let Some(end) = position_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let select = Statement::new(OPERATION, SEGMENTS)
        .bind(tenant.as_str())
        .bind(end.branch_id)
        .bind(end.position);
    let segments: SegmentCheck = rows_fold(engine, tenant, select).await?;
    let select = Statement::new(OPERATION, STATES)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid());
    let states: StateCheck = rows_fold(engine, tenant, select).await?;
    let select = |text| {
        Statement::new(OPERATION, text)
            .bind(tenant.as_str())
            .bind(session_id.as_uuid())
    };
    let rows: Vec<SessionRow> = select(HEADS).fetch_all(engine).await?;
    let retained = rows.into_iter().map(SessionHead::try_from);
    let mut line: Vec<Ancestor> = retained
        .map(|head| head.map(Ancestor::Kept))
        .collect::<Result<_, _>>()?;
    if has_gap(session_id, &line, usize::MAX) {
        let removed: Vec<RemovedSessionRow> = select(REMOVED).fetch_all(engine).await?;
        for row in removed {
            line.push(Ancestor::Removed(row.try_into()?));
        }
    }
    line.sort_by_key(Ancestor::depth);
    Verification::new(segments, states).check(&line).map(Some)
}

impl RowFold for SegmentCheck {
    type Row<'r> = SegmentRow<'r>;

    fn push_row(&mut self, row: SegmentRow<'_>) -> Result<(), StoreError> {
        self.push(&row);
        Ok(())
    }
}

impl RowFold for StateCheck {
    type Row<'r> = StateRow<'r>;

    fn push_row(&mut self, row: StateRow<'_>) -> Result<(), StoreError> {
        self.push(row);
        Ok(())
    }
}
