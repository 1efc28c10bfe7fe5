//! Reads sessions. No list reads a payload column.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::engine::Engine;
use super::session_lookup::session_lookup;
use super::statement::Statement;
use super::text::sql;
use super::{history, lineage, trees, verify};
use crate::driver_error::nothing_matches;
use crate::error::StoreError;
use crate::query::Page;
use crate::retention::Ancestor;
use crate::rows::{SessionRow, values};
use crate::sessions::{SegmentList, SessionFilter, SessionReader, SessionTree, VerifyReport};
use agent::record::ThreadName;
use values::ids::{SessionId, StepId};
use values::message::Message;
use values::session::{Bundle, SessionHead};
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> SessionReader for E {
    async fn bundle_load(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Bundle>, StoreError> {
        history::bundle_load(self, tenant, session_id).await
    }

    async fn session_lookup(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<SessionHead>, StoreError> {
        session_lookup(self, tenant, session_id).await
    }

    async fn session_list(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: Page<SessionId>,
    ) -> Result<Vec<SessionHead>, StoreError> {
        let wanted = serde_json::Value::Object(filter.metadata.clone()).to_string();
        let select = list_statement::<E>(tenant, filter, &wanted, page);
        select.list::<SessionRow, _>(self).await.or_else(nothing_matches)
    }

    async fn tree_list(&self, tenant: &TenantId, page: Page<SessionId>) -> Result<Vec<SessionTree>, StoreError> {
        trees::tree_list(self, tenant, page).await
    }

    async fn session_lineage(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        page: Page<SessionId>,
    ) -> Result<Option<Vec<Ancestor>>, StoreError> {
        lineage::session_lineage(self, tenant, session_id, page).await
    }

    async fn session_lookup_by_message(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        index: u64,
    ) -> Result<Option<Ancestor>, StoreError> {
        lineage::session_lookup_by_message(self, tenant, session_id, index).await
    }

    async fn states_load(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Bundle>, StoreError> {
        history::states_load(self, tenant, session_id).await
    }

    async fn states_size(&self, tenant: &TenantId, session_id: SessionId) -> Result<u64, StoreError> {
        history::states_size(self, tenant, session_id).await
    }

    async fn segment_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        from: u64,
        limit: u32,
    ) -> Result<Option<SegmentList>, StoreError> {
        history::segment_list(self, tenant, session_id, from, limit).await
    }

    async fn message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        indexes: Range<u64>,
    ) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
        history::message_list(self, tenant, session_id, indexes).await
    }

    async fn new_message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
        history::new_message_list(self, tenant, session_id).await
    }

    async fn step_message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        steps: BTreeSet<StepId>,
    ) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
        history::step_message_list(self, tenant, session_id, steps).await
    }

    async fn session_verify(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<VerifyReport>, StoreError> {
        verify::session_verify(self, tenant, session_id).await
    }
}

/// Selects a page of sessions. `wanted` is the metadata of the filter as JSON.
fn list_statement<'v, E: Engine>(
    tenant: &'v TenantId,
    filter: &'v SessionFilter,
    wanted: &'v str,
    page: Page<SessionId>,
) -> Statement<'v> {
    let statement = sql!("select ", SessionRow::COLUMNS, " from sessions s where s.tenant = $1");
    let mut select = Statement::with("list sessions", statement, values![tenant]);
    select.push_some(" and s.parent_session_id = ", filter.parent);
    select.push_some(" and s.root_session_id = ", filter.root);
    select.push_some(" and s.subagent_of = ", filter.subagent_of);
    // An agent and a thread may have many more sessions than a tree.
    let and = if filter.root.is_some() {
        E::AND_UNINDEXED
    } else {
        " and "
    };
    for (condition, name) in [
        ("s.agent = ", filter.agent.as_deref()),
        ("s.thread = ", filter.thread.as_ref().map(ThreadName::as_str)),
    ] {
        if let Some(name) = name {
            select.push(and);
            select.push_bind(condition, name);
        }
    }
    select.push_some(" and s.created_at >= ", filter.created.from);
    select.push_some(" and s.created_at < ", filter.created.until);
    if !filter.metadata.is_empty() {
        E::push_metadata_filter(&mut select, wanted);
    }
    if filter.tips_only {
        select.push(
            " and not exists (
                select 1 from sessions child
                where child.tenant = s.tenant and child.parent_session_id = s.session_id)",
        );
    }
    select.push_some(" and s.session_id < ", page.before);
    select.push_bind(" order by s.session_id desc limit ", page.limit);
    select
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;

    #[tokio::test]
    async fn sessions_of_a_tree_are_read_from_its_index_on_sqlite() {
        let (tenant, page) = (TenantId::anonymous(), Page { before: None, limit: 3 });
        for (has_root, has_agent, has_thread, index) in [
            (true, false, false, "sessions_by_root"),
            (true, true, false, "sessions_by_root"),
            (true, false, true, "sessions_by_root"),
            (true, true, true, "sessions_by_root"),
            (false, true, false, "sessions_by_agent"),
            (false, false, true, "sessions_by_thread"),
        ] {
            let filter = SessionFilter {
                root: has_root.then(|| SessionId::from_uuid(uuid::Uuid::nil())),
                agent: has_agent.then(|| "a".to_owned()),
                thread: has_thread.then(|| "t".parse().unwrap()),
                ..SessionFilter::default()
            };
            let select = list_statement::<SqliteStore>(&tenant, &filter, "{}", page);
            assert_eq!(select.sqlite_indexes().await, [index], "{filter:?}");
        }
    }
}
