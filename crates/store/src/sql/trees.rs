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

/// The roots of the trees of a page, newest first; null after the last root of all.
const ROOTS: &str = "with recursive tree (root_session_id, number) as (
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
    )";

/// Follows an engine's `TREE_FIGURES`. The engine's `OLDEST_OF_TREE` comes next.
const TREES: &str = sql!(
    " select ",
    SessionRow::COLUMNS,
    ", figures.session_count, figures.last_activity_at, figures.threads from figures"
);
const NEWEST_FIRST: &str = " order by figures.root_session_id desc limit $3";

/// Lists trees, newest root first, each with its oldest session.
pub(super) async fn tree_list<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    page: Page<SessionId>,
) -> Result<Vec<SessionTree>, StoreError> {
    let select = list_statement::<E>(tenant, page);
    select.list::<SessionTreeRow, _>(engine).await
}

fn list_statement<E: Engine>(tenant: &TenantId, page: Page<SessionId>) -> Statement<'_> {
    let before = page.before.map_or(Uuid::max(), SessionId::as_uuid);
    let mut select = Statement::with("list trees", ROOTS, values![tenant, before, page.limit]);
    select.push(E::TREE_FIGURES);
    select.push(TREES);
    select.push(E::OLDEST_OF_TREE);
    select.push(NEWEST_FIRST);
    select
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;

    #[tokio::test]
    async fn a_list_of_trees_reads_each_twice_on_sqlite() {
        let page = Page { before: None, limit: 3 };
        let tenant = TenantId::anonymous();
        let indexes = list_statement::<SqliteStore>(&tenant, page).sqlite_indexes().await;
        let reads = |name: &str| indexes.iter().filter(|index| *index == name).count();
        // Two for the roots, two for the figures, one for the oldest session without the root.
        assert_eq!(reads("sessions_by_root"), 5, "{indexes:?}");
        assert_eq!(reads("threads_by_session"), 1, "{indexes:?}");
    }
}
