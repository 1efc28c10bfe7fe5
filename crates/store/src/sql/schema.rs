//! Reads the version of the schema, and migrates the schema to the version that this code needs.

use super::connection::Connection;
use super::engine::Engine;
use super::statement::Statement;
use crate::driver_error::{is_undefined_table, store_error};
use crate::error::StoreError;
use crate::migration::{Migration, NEEDED_VERSION, check_version};
use crate::rows::values;

/// The write of a readiness check.
pub(crate) const CHECK_WRITE: &str = "check that writes succeed";

const NEWEST: &str = "select coalesce(max(version), 0) from schema_migrations";

/// Refuses a schema of another version, older or newer. Without tables the version is 0.
pub(crate) async fn check_schema(engine: &impl Engine) -> Result<(), StoreError> {
    const OPERATION: &str = "read schema version";
    let failed = store_error(OPERATION);
    let version = match engine.fetch_optional(Statement::new(OPERATION, NEWEST)).await {
        Err(error) if is_undefined_table(&error) => 0,
        Err(error) => return Err(failed(error)),
        Ok(None) => 0,
        Ok(Some(row)) => row.read().map(|(version,)| version).map_err(failed)?,
    };
    check_version(version)
}

/// Runs the missing migrations in the transaction of a connection. `create` creates the table of
/// versions. Fails without a change if the schema is newer.
pub(crate) async fn migrate_in_txn(
    mut connection: Connection<'_>,
    create: &'static str,
    migrations: &[Migration],
) -> Result<(), StoreError> {
    const OPERATION: &str = "migrate";
    let failed = store_error(OPERATION);
    let create = Statement::new(OPERATION, create);
    connection.execute(create).await.map_err(&failed)?;
    let newest: Option<(i64,)> = connection
        .fetch_optional(Statement::new(OPERATION, NEWEST))
        .await
        .map_err(&failed)?;
    let found = newest.map_or(0, |(version,)| version);
    if found > NEEDED_VERSION {
        return check_version(found);
    }
    for migration in migrations.iter().filter(|migration| migration.version > found) {
        connection.run_script(migration.sql).await.map_err(&failed)?;
        let statement = "insert into schema_migrations (version, description) values ($1, $2)";
        let values = values![migration.version, migration.description];
        let insert = Statement::with(OPERATION, statement, values);
        connection.execute(insert).await.map_err(&failed)?;
    }
    Ok(())
}
