//! Lines of sessions: a session and its ancestors, including removed ones. No statement in this
//! file reads a payload column.

use std::cmp::Reverse;

use uuid::Uuid;

use super::columns::{ancestors, line_to_position};
use super::engine::Engine;
use super::history::message_session;
use super::session_lookup::{position_lookup, session_lookup};
use super::statement::Statement;
use super::text::sql;
use crate::error::StoreError;
use crate::query::Page;
use crate::retention::{Ancestor, RemovedSession};
use crate::rows::{RemovedSessionRow, SessionRow, values};
use values::ids::SessionId;
use values::session::SessionHead;
use values::tenant::TenantId;

/// Finds the parent of a session on the line that ends at a position.
const PARENT_ON_LINE: &str = concat!(
    "with recursive ",
    line_to_position!(),
    " select s.parent_session_id from sessions s
    join line on line.branch_id = s.branch_id and s.position <= line.last_position
    where s.tenant = $1 and s.session_id = $4
    union all
    select x.parent_session_id from removed_sessions x
    join line on line.branch_id = x.branch_id and x.position <= line.last_position
    where x.tenant = $1 and x.session_id = $4"
);

/// Lists a session and its ancestors, itself first.
pub(super) async fn session_lineage(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
    page: Page<SessionId>,
) -> Result<Option<Vec<Ancestor>>, StoreError> {
    let Some(end) = position_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let first = match page.before {
        None => Some(session_id),
        Some(before) => {
            let values = values![tenant, end.branch_id, end.position, before];
            let select = Statement::with("list lineage", PARENT_ON_LINE, values);
            let parent: Option<(Option<Uuid>,)> = select.fetch_optional(engine).await?;
            parent.and_then(|(parent,)| parent).map(SessionId::from_uuid)
        }
    };
    match first {
        Some(first) => line_from(engine, tenant, first, page.limit.into()).await.map(Some),
        None => Ok(Some(Vec::new())),
    }
}

const RETAINED: &str = sql!(
    ancestors!(" and ancestor.distance < $3"),
    " select ",
    SessionRow::COLUMNS,
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by s.depth desc
    limit $3"
);

const REMOVED: &str = sql!(
    ancestors!(" and ancestor.distance < $3"),
    " select ",
    RemovedSessionRow::COLUMNS,
    " from ancestor join removed_sessions x on x.tenant = $1 and x.session_id = ancestor.session_id
    order by x.depth desc
    limit $3"
);

/// Reads a session and its ancestors up to a limit, itself first. Takes a second statement only if
/// some were removed.
pub(super) async fn line_from(
    engine: &impl Engine,
    tenant: &TenantId,
    first: SessionId,
    limit: u64,
) -> Result<Vec<Ancestor>, StoreError> {
    let select = |text| Statement::with("list lineage", text, values![tenant, first, limit]);
    let retained: Vec<SessionHead> = select(RETAINED).list::<SessionRow, _>(engine).await?;
    let mut line: Vec<Ancestor> = retained.into_iter().map(Ancestor::Retained).collect();
    if has_gap(first, &line, limit) {
        let removed: Vec<RemovedSession> = select(REMOVED).list::<RemovedSessionRow, _>(engine).await?;
        line.extend(removed.into_iter().map(Ancestor::Removed));
        line.sort_by_key(|ancestor| Reverse(ancestor.depth()));
        line.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(line)
}

/// Reads the session that added a message, or its tombstone. Returns `None` if the session does not
/// exist or has no such message.
pub(super) async fn session_lookup_by_message(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
    index: u64,
) -> Result<Option<Ancestor>, StoreError> {
    let Some(added_by) = message_session(engine, tenant, session_id, index).await? else {
        return Ok(None);
    };
    if let Some(retained) = session_lookup(engine, tenant, added_by).await? {
        return Ok(Some(Ancestor::Retained(retained)));
    }
    let statement = sql!(
        "select ",
        RemovedSessionRow::COLUMNS,
        " from removed_sessions x where x.tenant = $1 and x.session_id = $2"
    );
    let select = Statement::with("look up removed session", statement, values![tenant, added_by]);
    let removed: Option<RemovedSession> = select.find::<RemovedSessionRow, _>(engine).await?;
    Ok(removed.map(Ancestor::Removed))
}

/// Returns whether a line of sessions, the latest first, has a gap or ends too early: before the
/// limit and before the first session of the line.
fn has_gap(first: SessionId, line: &[Ancestor], limit: u64) -> bool {
    let mut next = Some(first);
    for ancestor in line {
        if next != Some(ancestor.session_id()) {
            return true;
        }
        next = ancestor.parent_session_id();
    }
    next.is_some() && (line.len() as u64) < limit
}
