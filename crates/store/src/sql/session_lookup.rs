//! Reads one session without its payloads.

use super::engine::Engine;
use super::statement::Statement;
use super::text::sql;
use crate::error::StoreError;
use crate::rows::{PositionRow, SessionRow, values};
use values::ids::SessionId;
use values::session::SessionHead;
use values::tenant::TenantId;

/// Reads a session without its payloads.
pub(crate) async fn session_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<SessionHead>, StoreError> {
    let statement = sql!(
        "select ",
        SessionRow::COLUMNS,
        " from sessions s where s.tenant = $1 and s.session_id = $2"
    );
    let select = Statement::with("look up session", statement, values![tenant, session_id]);
    select.find::<SessionRow, _>(engine).await
}

/// Finds the position of a session.
pub(super) async fn position_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<PositionRow>, StoreError> {
    let statement = "select branch_id, position, message_count from sessions where tenant = $1 and session_id = $2";
    let select = Statement::with("look up session", statement, values![tenant, session_id]);
    select.fetch_optional(engine).await
}
