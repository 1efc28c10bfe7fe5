//! Checks that a lease is in force, and binds its fence token.

use crate::ids::RunId;
use crate::store::error::StoreError;
use crate::store::queue::Lease;
use crate::store::rows::{LeaseKey, stored_count};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

/// Tells whether a lease is in force.
pub(super) async fn is_leased(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let row: Option<(i32,)> = Statement::new("check lease", statement)
        .bind_lease(lease)
        .fetch_optional(engine)
        .await?;
    Ok(row.is_some())
}

impl<'v> Statement<'v> {
    /// Binds a lease: the tenant, the run and the fence.
    pub(crate) fn bind_lease(self, lease: &'v Lease) -> Self {
        self.bind(lease.tenant.as_str())
            .bind(lease.run_id.as_uuid())
            .bind(stored_count(lease.fence))
    }

    /// Binds a lease as its row has it.
    pub(crate) fn bind_key(self, key: &'v LeaseKey) -> Self {
        self.bind(key.tenant.as_str()).bind(key.run_id).bind(key.fence)
    }

    /// Binds a run.
    pub(crate) fn bind_run_key(self, tenant: &'v TenantId, run_id: RunId) -> Self {
        self.bind(tenant.as_str()).bind(run_id.as_uuid())
    }
}
