//! Reads sessions. No list reads a payload column.

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
use values::ids::SessionId;
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
        let statement = sql!("select ", SessionRow::COLUMNS, " from sessions s where s.tenant = $1");
        let wanted = serde_json::Value::Object(filter.metadata.clone()).to_string();
        let mut select = Statement::with("list sessions", statement, values![tenant]);
        select.push_some(" and s.agent = ", filter.agent.as_ref());
        select.push_some(" and s.parent_session_id = ", filter.parent);
        select.push_some(" and s.root_session_id = ", filter.root);
        select.push_some(" and s.subagent_of = ", filter.subagent_of);
        select.push_some(" and s.thread = ", filter.thread.as_ref());
        select.push_some(" and s.created_at >= ", filter.created.from);
        select.push_some(" and s.created_at < ", filter.created.until);
        if !filter.metadata.is_empty() {
            E::push_metadata_filter(&mut select, &wanted);
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

    async fn session_verify(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<VerifyReport>, StoreError> {
        verify::session_verify(self, tenant, session_id).await
    }
}
