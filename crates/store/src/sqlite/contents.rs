//! Writes contents of workspaces on SQLite, each batch in one transaction.

use crate::rows::{HashList, NewContentRow, RenewedContentRow, values};
use crate::sql::{Connection, Ended, FIND_MISSING, PUT, Statement};
use values::session::Hash;
use values::tenant::TenantId;

/// The current time in microseconds.
macro_rules! now {
    () => {
        "(cast(round(unixepoch('subsec') * 1000) as integer) * 1000)"
    };
}

/// The time of ten minutes ago.
macro_rules! a_while_ago {
    () => {
        concat!("(", now!(), " - 600000000)")
    };
}

/// Records that contents of the tenant have changed, unless that was recorded a short time ago.
const RECORD_CHANGE: &str = concat!(
    "insert into content_sweeps (tenant, changed_at, swept_at)
    select $1, ",
    now!(),
    ", ",
    now!(),
    " where not exists (
        select 1 from content_sweeps where tenant = $1 and changed_at > ",
    a_while_ago!(),
    ")
    on conflict (tenant) do update set changed_at = excluded.changed_at"
);

const RENEW: &str = concat!(
    "update contents set written_at = ",
    now!(),
    " where tenant = $1 and hash in (select unhex(value) from json_each($2)) and written_at < ",
    a_while_ago!()
);

const STORED: &str = "select hash, kind, size from contents
    where tenant = $1 and hash in (select unhex(value) from json_each($2))";

/// Inserts contents. If a content is stored already, updates the time of its last write.
pub(super) async fn insert_in_txn(
    mut connection: Connection<'_>,
    tenant: TenantId,
    rows: Vec<NewContentRow>,
) -> Result<Ended<()>, sqlx::Error> {
    for row in &rows {
        let mut insert = Statement::with(PUT, "insert into contents (tenant, written_at, ", values![&tenant]);
        insert.push_columns(row);
        insert.push(concat!(") values ($1, ", now!(), ", "));
        insert.push_values(row);
        insert.push(concat!(
            ") on conflict (tenant, hash) do update set written_at = excluded.written_at
                where contents.written_at < ",
            a_while_ago!()
        ));
        connection.execute(insert).await?;
    }
    let record = Statement::with(PUT, RECORD_CHANGE, values![&tenant]);
    connection.execute(record).await?;
    Ok(Ended::Committed(()))
}

/// Returns those contents that are stored. Updates the time of their last write.
pub(super) async fn renew_in_txn(
    mut connection: Connection<'_>,
    tenant: TenantId,
    hashes: Vec<Hash>,
) -> Result<Ended<Vec<RenewedContentRow>>, sqlx::Error> {
    let statement = |text| Statement::with(FIND_MISSING, text, values![&tenant, HashList(&hashes)]);
    if connection.execute(statement(RENEW)).await? > 0 {
        let record = Statement::with(FIND_MISSING, RECORD_CHANGE, values![&tenant]);
        connection.execute(record).await?;
    }
    Ok(Ended::Committed(connection.fetch_all(statement(STORED)).await?))
}
