//! Checks that a lease is in force, and binds its fence token.

use crate::error::StoreError;
use crate::queue::Lease;
use crate::rows::LeaseKey;
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;

/// Returns whether a lease is in force.
pub(super) async fn is_leased(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let statement = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let select = Statement::new("check lease", statement).bind_lease(lease);
    let row: Option<(i32,)> = select.fetch_optional(engine).await?;
    Ok(row.is_some())
}

impl<'v> Statement<'v> {
    /// Binds a lease: the tenant, the run and the fence.
    pub(crate) fn bind_lease(self, lease: &'v Lease) -> Self {
        self.bind(&lease.tenant).bind(lease.run_id).bind(lease.fence)
    }

    /// Binds the stored key of a lease.
    pub(crate) fn bind_key(self, key: &'v LeaseKey) -> Self {
        self.bind(&key.tenant).bind(key.run_id).bind(key.fence)
    }
}
