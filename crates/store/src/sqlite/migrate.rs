//! Migrations on SQLite: all missing ones in one transaction, so that a failure leaves the schema
//! as it was.

use sqlx::{Connection as _, SqliteConnection};

use super::connect::{connect_writer, parse};
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::migration::SQLITE;
use crate::open_error::OpenError;
use crate::sql::{Connection, migrate_in_txn};

/// Brings the schema to the version that this code needs; a newer schema stays unchanged and is an
/// error.
///
/// Uses a separate connection. If the caller is cancelled, the connection closes and SQLite rolls
/// back.
pub(crate) async fn migrate(url: &str) -> Result<(), OpenError> {
    let options = parse(url)?;
    let mut connection = connect_writer(&options).await?;
    migrate_on_conn(&mut connection).await?;
    // The migration is committed, so an error of closing does not matter.
    drop(connection.close().await);
    Ok(())
}

async fn migrate_on_conn(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let failed = store_error("migrate");
    let mut transaction = connection.begin_with("begin immediate").await.map_err(&failed)?;
    let create = "create table if not exists schema_migrations (
        version integer primary key, description text not null, applied_at text not null default current_timestamp
    ) strict";
    migrate_in_txn(Connection::Sqlite(&mut transaction), create, SQLITE).await?;
    transaction.commit().await.map_err(failed)
}
