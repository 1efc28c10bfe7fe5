//! Reads sessions: the trait.

use std::ops::Range;
use std::sync::Arc;

use super::engine::Engine;
use super::session_lookup::session_lookup;
use super::{history, lists, verify};
use crate::ids::SessionId;
use crate::message::Message;
use crate::session::{Bundle, SessionHead};
use crate::store::error::StoreFuture;
use crate::store::query::{Page, SessionFilter};
use crate::store::retention::Ancestor;
use crate::store::traits::{SegmentList, SessionReader, VerifyReport};
use crate::tenant::TenantId;

impl<E: Engine> SessionReader for E {
    fn bundle_load<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, Option<Bundle>> {
        Box::pin(history::bundle_load(self, tenant, session_id))
    }

    fn session_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<SessionHead>> {
        Box::pin(session_lookup(self, tenant, session_id))
    }

    fn session_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a SessionFilter,
        page: Page<SessionId>,
    ) -> StoreFuture<'a, Vec<SessionHead>> {
        Box::pin(lists::session_list(self, tenant, filter, page))
    }

    fn session_lineage<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        page: Page<SessionId>,
    ) -> StoreFuture<'a, Option<Vec<Ancestor>>> {
        Box::pin(lists::session_lineage(self, tenant, session_id, page))
    }

    fn states_load<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, Option<Bundle>> {
        Box::pin(history::states_load(self, tenant, session_id))
    }

    fn states_size<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, u64> {
        Box::pin(history::states_size(self, tenant, session_id))
    }

    fn segment_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        from: u64,
        limit: u32,
    ) -> StoreFuture<'a, Option<SegmentList>> {
        Box::pin(history::segment_list(self, tenant, session_id, from, limit))
    }

    fn message_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        indexes: Range<u64>,
    ) -> StoreFuture<'a, Option<Vec<Arc<Message>>>> {
        Box::pin(history::message_list(self, tenant, session_id, indexes))
    }

    fn new_message_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<Vec<Arc<Message>>>> {
        Box::pin(history::new_message_list(self, tenant, session_id))
    }

    fn session_verify<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<VerifyReport>> {
        Box::pin(verify::session_verify(self, tenant, session_id))
    }
}
