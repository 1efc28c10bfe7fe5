//! Verification: four statements, whatever the depth. Rows are read as they come, so payloads don't pile up.

use super::columns::{line_of_place, session_columns};
use super::engine::{Engine, EngineRow};
use super::sessions::place_lookup;
use super::statement::Statement;
use crate::ids::SessionId;
use crate::session::SessionHead;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::rows::SessionRow;
use crate::store::traits::VerifyReport;
use crate::store::verification::Verification;
use crate::tenant::TenantId;

const SEGMENTS: &str = concat!(
    "with recursive ",
    line_of_place!(),
    " select h.branch_id, h.position, h.first_index, h.message_count, h.schema_version, h.encoding, h.payload
    from line
    join history_segments h on h.tenant = $1 and h.branch_id = line.branch_id and h.position <= line.last_position"
);

macro_rules! ancestors {
    () => {
        "with recursive ancestor (session_id, parent_session_id, environment_hash, context_hash) as (
            select session_id, parent_session_id, environment_hash, context_hash from sessions
            where tenant = $1 and session_id = $2
            union all
            select p.session_id, p.parent_session_id, p.environment_hash, p.context_hash
            from ancestor join sessions p on p.tenant = $1 and p.session_id = ancestor.parent_session_id
        )"
    };
}

const STATES: &str = concat!(
    ancestors!(),
    " select hash, kind, schema_version, encoding, payload from states
    where tenant = $1 and hash in (select environment_hash from ancestor union select context_hash from ancestor)"
);

const HEADS: &str = concat!(
    ancestors!(),
    " select ",
    session_columns!(),
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by s.depth"
);

/// Computes all hashes of a line again.
pub(super) async fn session_verify(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<VerifyReport>, StoreError> {
    const OPERATION: &str = "verify session";
    let failed = store_error(OPERATION);
    let Some(place) = place_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let mut verification = Verification::default();
    let push_segment = |row: &EngineRow| {
        verification.push_segment(&row.read().map_err(&failed)?);
        Ok(())
    };
    Statement::new(OPERATION, SEGMENTS)
        .bind(tenant.as_str())
        .bind(place.branch_id)
        .bind(place.position)
        .fetch_each(engine, push_segment)
        .await?;
    let push_state = |row: &EngineRow| {
        verification.push_state(&row.read().map_err(&failed)?);
        Ok(())
    };
    Statement::new(OPERATION, STATES)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .fetch_each(engine, push_state)
        .await?;
    let rows: Vec<SessionRow> = Statement::new(OPERATION, HEADS)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .fetch_all(engine)
        .await?;
    let line = rows
        .into_iter()
        .map(SessionHead::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    verification.check(&line).map(Some)
}
