//! The version of the schema in the database.

use super::engine::Engine;
use super::statement::Statement;
use crate::store::driver_error::{is_undefined_table, store_error};
use crate::store::error::StoreError;

/// Reads the version of the schema; 0 when there is none.
pub(crate) async fn schema_version(engine: &impl Engine) -> Result<i64, StoreError> {
    const OPERATION: &str = "read schema version";
    let failed = store_error(OPERATION);
    let select = Statement::new(OPERATION, "select coalesce(max(version), 0) from schema_migrations");
    match engine.fetch_optional(select).await {
        Err(error) if is_undefined_table(&error) => Ok(0),
        Err(error) => Err(failed(error)),
        Ok(None) => Ok(0),
        Ok(Some(row)) => row.read().map(|(version,)| version).map_err(failed),
    }
}
