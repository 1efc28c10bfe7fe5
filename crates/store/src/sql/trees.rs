//! Lists trees of sessions. Each session has the id of the root of its tree, so the list skips from
//! root to root in the index `sessions_by_root`: one lookup for each tree of the page, however many
//! sessions it has. No statement in this file reads a payload column.

use uuid::Uuid;

use super::engine::Engine;
use super::statement::Statement;
use super::text::sql;
use crate::error::StoreError;
use crate::query::Page;
use crate::rows::{SessionRow, SessionTreeRow, values};
use crate::sessions::SessionTree;
use values::ids::SessionId;
use values::tenant::TenantId;

/// Selects columns of the newest sessions `m` of a tree. Their number is bounded, since a tree may
/// have any number of sessions.
macro_rules! newest {
    ($columns:literal) => {
        concat!(
            "(select ",
            $columns,
            " from sessions m where m.tenant = $1 and m.root_session_id = tree.root_session_id
            order by m.session_id desc limit 1000) m"
        )
    };
}

/// With `cross join`, SQLite looks up the threads of each session, and does not read all threads.
const TREES: &str = sql!(
    "with recursive tree (root_session_id, number) as (
        select (
            select s.root_session_id from sessions s
            where s.tenant = $1 and s.root_session_id < $2
            order by s.root_session_id desc limit 1), 1
        union all
        select (
            select s.root_session_id from sessions s
            where s.tenant = $1 and s.root_session_id < tree.root_session_id
            order by s.root_session_id desc limit 1), tree.number + 1
        from tree where tree.root_session_id is not null and tree.number < $3
    )
    select ",
    SessionRow::COLUMNS,
    ", (select count(*) from ",
    newest!("m.session_id"),
    ") as session_count, (select max(m.created_at) from ",
    newest!("m.created_at"),
    ") as last_activity_at, (select string_agg(named.name, ' ') from (
            select t.name from ",
    newest!("m.session_id"),
    " cross join threads t where t.tenant = $1 and t.session_id = m.session_id
            order by t.name limit 10) named) as threads
    from tree join sessions s on s.tenant = $1 and s.session_id = coalesce(
        (select r.session_id from sessions r where r.tenant = $1 and r.session_id = tree.root_session_id),
        (select r.session_id from sessions r where r.tenant = $1 and r.root_session_id = tree.root_session_id
            order by r.session_id limit 1))
    order by tree.root_session_id desc
    limit $3"
);

/// Lists trees, newest root first, each with its oldest session.
pub(super) async fn tree_list(
    engine: &impl Engine,
    tenant: &TenantId,
    page: Page<SessionId>,
) -> Result<Vec<SessionTree>, StoreError> {
    let before = page.before.map_or(Uuid::max(), SessionId::as_uuid);
    let select = Statement::with("list trees", TREES, values![tenant, before, page.limit]);
    select.list::<SessionTreeRow, _>(engine).await
}
