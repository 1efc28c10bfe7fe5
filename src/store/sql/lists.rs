//! Lists of sessions. No statement here reads a payload column.

use uuid::Uuid;

use super::columns::{line_of_place, session_columns};
use super::engine::Engine;
use super::sessions::place_lookup;
use super::statement::Statement;
use crate::ids::SessionId;
use crate::session::SessionHead;
use crate::store::driver_error::nothing_matches;
use crate::store::error::StoreError;
use crate::store::query::{Page, SessionFilter};
use crate::store::rows::{SessionRow, StoredTime};
use crate::tenant::TenantId;

/// Lists sessions, newest first.
pub(super) async fn session_list<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    filter: &SessionFilter,
    page: Page<SessionId>,
) -> Result<Vec<SessionHead>, StoreError> {
    let statement = concat!("select ", session_columns!(), " from sessions s where s.tenant = $1");
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

const LINEAGE: &str = concat!(
    "with recursive ancestor (session_id, parent_session_id, distance) as (
        select session_id, parent_session_id, 1 from sessions
        where tenant = $1 and session_id = $2
        union all
        select p.session_id, p.parent_session_id, ancestor.distance + 1
        from ancestor join sessions p on p.tenant = $1 and p.session_id = ancestor.parent_session_id
        where ancestor.distance < $3
    )
    select ",
    session_columns!(),
    " from ancestor join sessions s on s.tenant = $1 and s.session_id = ancestor.session_id
    order by ancestor.distance
    limit $3"
);

/// Finds the parent of a session that lies on the line which ends at a place.
const PARENT_ON_LINE: &str = concat!(
    "with recursive ",
    line_of_place!(),
    " select s.parent_session_id from sessions s
    join line on line.branch_id = s.branch_id and s.position <= line.last_position
    where s.tenant = $1 and s.session_id = $4"
);

/// Lists a session and its ancestors, itself first.
pub(super) async fn session_lineage(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
    page: Page<SessionId>,
) -> Result<Option<Vec<SessionHead>>, StoreError> {
    const OPERATION: &str = "list lineage";
    let Some(place) = place_lookup(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let first = match page.before {
        None => Some(session_id.as_uuid()),
        Some(before) => Statement::new(OPERATION, PARENT_ON_LINE)
            .bind(tenant.as_str())
            .bind(place.branch_id)
            .bind(place.position)
            .bind(before.as_uuid())
            .fetch_optional::<(Option<Uuid>,)>(engine)
            .await?
            .and_then(|(parent,)| parent),
    };
    let rows: Vec<SessionRow> = Statement::new(OPERATION, LINEAGE)
        .bind(tenant.as_str())
        .bind(first)
        .bind(i64::from(page.limit))
        .fetch_all(engine)
        .await?;
    rows.into_iter()
        .map(SessionHead::try_from)
        .collect::<Result<_, _>>()
        .map(Some)
}
