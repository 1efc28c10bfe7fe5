//! Verifies sessions with four statements at any depth, and one more if ancestors were removed.
//! Checks payloads in [batches](super::row_batches). Then checks the files of the sessions; see
//! `verify_trees.rs`.

use super::columns::{ancestors, line_to_position};
use super::engine::Engine;
use super::lineage::line_from;
use super::row_batches::{RowFold, rows_fold};
use super::session_lookup::position_lookup;
use super::statement::Statement;
use super::verify_trees::check_trees;
use crate::error::StoreError;
use crate::rows::{SegmentRow, StateRow, values};
use crate::sessions::VerifyReport;
use crate::verification::{SegmentCheck, StateCheck, Verification};
use values::ids::SessionId;
use values::tenant::TenantId;

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
    select hash, kind, tree, schema_version, encoding, payload from states
    where tenant = $1 and hash in (select environment_hash from retained union select context_hash from retained)"
);

/// Computes all hashes of a line of sessions again.
pub(super) async fn session_verify(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<VerifyReport>, StoreError> {
    const OPERATION: &str = "verify session";
    let Some(end) = position_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let select = Statement::with(OPERATION, SEGMENTS, values![tenant, end.branch_id, end.position]);
    let segments: SegmentCheck = rows_fold(engine, tenant, select).await?;
    let select = Statement::with(OPERATION, STATES, values![tenant, session_id]);
    let states: StateCheck = rows_fold(engine, tenant, select).await?;
    let mut line = line_from(engine, tenant, session_id, u64::MAX).await?;
    line.reverse();
    let verification = Verification::new(segments, states);
    let mut report = verification.check(&line)?;
    let trees = verification.trees(&line);
    report.faults.extend(check_trees(engine, tenant, trees).await?);
    Ok(Some(report))
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
