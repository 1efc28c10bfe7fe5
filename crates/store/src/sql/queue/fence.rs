//! Checks that a lease is in force, and binds its fence token.

use crate::error::StoreError;
use crate::queue::Lease;
use crate::rows::LeaseKey;
use crate::sql::connection::Connection;
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;

/// Selects the row of a lease in force.
const LEASED: &str = "select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";

/// Returns whether a lease is in force.
pub(super) async fn is_leased(engine: &impl Engine, lease: &Lease) -> Result<bool, StoreError> {
    let key = LeaseKey::from(lease);
    let select = Statement::new("check lease", LEASED).bind_key(&key);
    let row: Option<(i32,)> = select.fetch_optional(engine).await?;
    Ok(row.is_some())
}

/// Returns whether a lease is in force, in a transaction. Locks its row in the given mode of
/// [`Engine`].
pub(crate) async fn is_leased_on_conn(
    connection: &mut Connection<'_>,
    operation: &'static str,
    lease: &LeaseKey,
    lock: &'static str,
) -> Result<bool, sqlx::Error> {
    let mut select = Statement::new(operation, LEASED).bind_key(lease);
    select.push(lock);
    let row: Option<(i32,)> = connection.fetch_optional(select).await?;
    Ok(row.is_some())
}

impl<'v> Statement<'v> {
    /// Binds the key of a lease: the tenant, the run and the fence.
    pub(crate) fn bind_key(self, key: &'v LeaseKey) -> Self {
        self.bind(&key.tenant).bind(key.run_id).bind(key.fence)
    }
}
