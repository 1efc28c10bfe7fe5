//! Lists of sessions. No statement in this file reads a payload column.

use uuid::Uuid;

use super::columns::{ancestors, line_to_position};
use super::engine::Engine;
use super::session_lookup::position_lookup;
use super::statement::Statement;
use super::text::sql;
use crate::ids::SessionId;
use crate::session::SessionHead;
use crate::store::driver_error::nothing_matches;
use crate::store::error::StoreError;
use crate::store::query::{Page, SessionFilter};
use crate::store::retention::Ancestor;
use crate::store::rows::{RemovedSessionRow, SessionRow, StoredTime};
use crate::tenant::TenantId;

/// Lists sessions, newest first.
pub(super) async fn session_list<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    filter: &SessionFilter,
    page: Page<SessionId>,
) -> Result<Vec<SessionHead>, StoreError> {
    let statement = sql!("select ", SessionRow::COLUMNS, " from sessions s where s.tenant = $1");
    let wanted = serde_json::Value::Object(filter.metadata.clone()).to_string();
    let mut select = Statement::new("list sessions", statement).bind(tenant.as_str());
    if let Some(agent) = &filter.agent {
        select.push_bind(" and s.agent = ", agent.as_str());
    }
    if let Some(parent) = filter.parent {
        select.push_bind(" and s.parent_session_id = ", parent.as_uuid());
    }
    if let Some(session_id) = filter.subagent_of {
        select.push_bind(" and s.subagent_of = ", session_id.as_uuid());
    }
    if let Some(from) = filter.created.from {
        select.push_bind(" and s.created_at >= ", StoredTime(from));
    }
    if let Some(until) = filter.created.until {
        select.push_bind(" and s.created_at < ", StoredTime(until));
    }
    if !filter.metadata.is_empty() {
        E::push_metadata_filter(&mut select, &wanted);
    }
    if let Some(thread) = &filter.thread {
        select.push(" and s.session_id in (select r.session_id from runs r where r.tenant = $1");
        select.push_bind(" and r.thread = ", thread.as_str());
        select.push(")");
    }
    if filter.tips_only {
        select.push(
            " and not exists (
                select 1 from sessions child where child.tenant = s.tenant and child.parent_session_id = s.session_id)",
        );
    }
    if let Some(before) = page.before {
        select.push_bind(" and s.session_id < ", before.as_uuid());
    }
    select.push_bind(" order by s.session_id desc limit ", i64::from(page.limit));
    let rows: Vec<SessionRow> = select.fetch_all(engine).await.or_else(nothing_matches)?;
    rows.into_iter().map(SessionHead::try_from).collect()
}

const LINEAGE: &str = sql!(
    ancestors!(" and ancestor.distance < $3"),
    " select ",
    SessionRow::COLUMNS,
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by s.depth desc
    limit $3"
);

const REMOVED_LINEAGE: &str = sql!(
    ancestors!(" and ancestor.distance < $3"),
    " select ",
    RemovedSessionRow::COLUMNS,
    " from ancestor join removed_sessions x on x.tenant = $1 and x.session_id = ancestor.session_id
    order by x.depth desc
    limit $3"
);

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
    const OPERATION: &str = "list lineage";
    let Some(end) = position_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let first = match page.before {
        None => Some(session_id.as_uuid()),
        Some(before) => Statement::new(OPERATION, PARENT_ON_LINE)
            .bind(tenant.as_str())
            .bind(end.branch_id)
            .bind(end.position)
            .bind(before.as_uuid())
            .fetch_optional::<(Option<Uuid>,)>(engine)
            .await?
            .and_then(|(parent,)| parent),
    };
    let Some(first) = first else {
        return Ok(Some(Vec::new()));
    };
    let select = |text| {
        Statement::new(OPERATION, text)
            .bind(tenant.as_str())
            .bind(first)
            .bind(i64::from(page.limit))
    };
    let retained: Vec<SessionRow> = select(LINEAGE).fetch_all(engine).await?;
    let retained = retained.into_iter().map(SessionHead::try_from);
    let mut lineage: Vec<Ancestor> = retained
        .map(|head| head.map(Ancestor::Kept))
        .collect::<Result<_, _>>()?;
    if has_gap(SessionId::from_uuid(first), &lineage, page.limit as usize) {
        let removed: Vec<RemovedSessionRow> = select(REMOVED_LINEAGE).fetch_all(engine).await?;
        for row in removed {
            lineage.push(Ancestor::Removed(row.try_into()?));
        }
        lineage.sort_by_key(|ancestor| std::cmp::Reverse(ancestor.depth()));
        lineage.truncate(page.limit as usize);
    }
    Ok(Some(lineage))
}

/// Tells whether a line of sessions, the latest first, has a gap, or ends before the limit and the
/// first session.
pub(super) fn has_gap(first: SessionId, line: &[Ancestor], limit: usize) -> bool {
    let mut next = Some(first);
    for ancestor in line {
        if next != Some(ancestor.session_id()) {
            return true;
        }
        next = ancestor.parent_session_id();
    }
    next.is_some() && line.len() < limit
}
