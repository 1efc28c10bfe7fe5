//! Migrations on PostgreSQL: all missing ones in one transaction, so that a failure leaves the
//! schema as it was.

use sqlx::{Connection as _, PgConnection};

use super::connect::connect_alone;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::migration::POSTGRES;
use crate::open_error::OpenError;
use crate::sql::{Connection, migrate_in_txn};

/// The key of the advisory lock of a migration; any constant works. Replicas that start at the same
/// time wait for the lock, so that none of them fails. Without the lock, two replicas might run a
/// step at once, and one transaction would fail as a whole.
const LOCK: i64 = 0x6167_656e_7472_756e;

/// Brings the schema to the version that this code needs; a newer schema stays unchanged and is an
/// error.
///
/// Uses a separate connection. If the caller is cancelled, the connection closes and the server
/// rolls back.
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
    // table lock gives up, since other statements on the table would queue behind it.
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
