//! Verification: four statements, whatever the depth, and one more where ancestors were removed. Payloads are read before they are checked, and
//! no more of them pile up than a [pile](super::pile) holds.

use std::mem::take;

use futures_util::TryStreamExt as _;

use super::columns::{ancestors, line_of_place, removed_session_columns, session_columns};
use super::engine::Engine;
use super::lists::has_gap;
use super::pile::{MOST, segments_fold};
use super::sessions::place_lookup;
use super::statement::Statement;
use crate::ids::SessionId;
use crate::off_thread::by_size;
use crate::session::SessionHead;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::retention::Ancestor;
use crate::store::rows::{RemovedSessionRow, SessionRow, StateRow};
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

const STATES: &str = concat!(
    ancestors!(""),
    ", kept as (
        select s.environment_hash, s.context_hash
        from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    )
    select hash, kind, schema_version, encoding, payload from states
    where tenant = $1 and hash in (select environment_hash from kept union select context_hash from kept)"
);

const HEADS: &str = concat!(
    ancestors!(""),
    " select ",
    session_columns!(),
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by s.depth desc"
);

const REMOVED: &str = concat!(
    ancestors!(""),
    " select ",
    removed_session_columns!(),
    " from ancestor join removed_sessions x on x.tenant = $1 and x.session_id = ancestor.session_id"
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
    let select = Statement::new(OPERATION, SEGMENTS)
        .bind(tenant.as_str())
        .bind(place.branch_id)
        .bind(place.position);
    let begin = Verification::default();
    let mut verification = segments_fold(engine, tenant, select, begin, |verification, segment| {
        verification.push_segment(segment);
        Ok(())
    })
    .await?;
    let select = Statement::new(OPERATION, STATES)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid());
    let mut rows = engine.fetch(select);
    let (mut states, mut stored): (Vec<StateRow>, _) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        if stored > MOST {
            verification = states_check(tenant, take(&mut states), verification).await;
            stored = 0;
        }
        let state: StateRow = row.read().map_err(&failed)?;
        stored += state.stored().bytes.len();
        states.push(state);
    }
    // The connection goes back.
    drop(rows);
    verification = states_check(tenant, states, verification).await;
    let select = |text| {
        Statement::new(OPERATION, text)
            .bind(tenant.as_str())
            .bind(session_id.as_uuid())
    };
    let rows: Vec<SessionRow> = select(HEADS).fetch_all(engine).await?;
    let kept = rows.into_iter().map(SessionHead::try_from);
    let mut line: Vec<Ancestor> = kept.map(|head| head.map(Ancestor::Kept)).collect::<Result<_, _>>()?;
    if has_gap(session_id, &line, usize::MAX) {
        let removed: Vec<RemovedSessionRow> = select(REMOVED).fetch_all(engine).await?;
        for row in removed {
            line.push(Ancestor::Removed(row.try_into()?));
        }
    }
    line.sort_by_key(Ancestor::depth);
    verification.check(&line).map(Some)
}

async fn states_check(tenant: &TenantId, states: Vec<StateRow>, mut verification: Verification) -> Verification {
    for state in states {
        let bytes = state.stored().length();
        let check = move || {
            verification.push_state(&state);
            verification
        };
        verification = by_size(tenant, bytes, check).await;
    }
    verification
}
