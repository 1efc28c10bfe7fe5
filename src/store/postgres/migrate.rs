//! Migrations on PostgreSQL: all missing ones in one transaction, so that a failure leaves the
//! schema as it was.

use sqlx::{Connection as _, PgConnection};

use super::connect::connect_alone;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::migration::POSTGRES;
use crate::store::open::OpenError;
use crate::store::sql::{Connection, migrate_in_txn};

/// Names the advisory lock of a migration; any constant does. Replicas that start at once wait for
/// it, so that none of them fails. Nothing else depends on it: a step that two took at once would
/// fail in one of them, with its whole transaction.
const LOCK: i64 = 0x6167_656e_7472_756e;

/// Brings the schema to the version that this code needs; a newer one stays as it is and is an
/// error.
///
/// The connection is its own: when the caller goes away it closes, and the server rolls back.
pub(crate) async fn migrate(url: &str) -> Result<(), OpenError> {
    let mut connection = connect_alone(url).await?;
    migrate_on_conn(&mut connection).await?;
    // The migration is committed, so an error of closing does not matter.
    drop(connection.close().await);
    Ok(())
}

async fn migrate_on_conn(connection: &mut PgConnection) -> Result<(), StoreError> {
    let failed = store_error("migrate");
    let mut transaction = connection.begin().await.map_err(&failed)?;
    // Suppresses the server's notice that a table exists already. A statement that waits for a
    // table gives up, since all that use the tables before it would wait as well.
    let begin = "select pg_advisory_xact_lock($1), set_config('client_min_messages', 'warning', true),
        set_config('lock_timeout', '5s', true)";
    sqlx::query(begin)
        .bind(LOCK)
        .execute(&mut *transaction)
        .await
        .map_err(&failed)?;
    let create = "create table if not exists schema_migrations (
        version bigint primary key, description text not null, applied_at timestamptz not null default now())";
    migrate_in_txn(Connection::Postgres(&mut transaction), create, POSTGRES).await?;
    transaction.commit().await.map_err(failed)
}
