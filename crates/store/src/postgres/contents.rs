//! Writes contents of workspaces on PostgreSQL, each batch with one statement.

use sqlx::FromRow as _;

use super::PostgresStore;
use super::timeouts::in_time;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::rows::{HashList, NewContentRow, RenewedContentRow, values};
use crate::sql::{FIND_MISSING, PUT, Statement};
use values::session::Hash;
use values::tenant::TenantId;

/// Records that contents of the tenant have changed, unless that was recorded a short time ago. A
/// condition on a change may follow.
macro_rules! record_change {
    ($condition:literal) => {
        concat!(
            "changed as (
                insert into content_sweeps (tenant, changed_at, swept_at)
                select $1, clock_timestamp(), clock_timestamp()
                where not exists (
                    select from content_sweeps
                    where tenant = $1 and changed_at > clock_timestamp() - interval '10 minutes')",
            $condition,
            " on conflict (tenant) do update set changed_at = excluded.changed_at
            )"
        )
    };
}

/// Locks and inserts rows in the order of the arrays.
const INSERT: &str = concat!(
    "with ",
    record_change!(""),
    " insert into contents (tenant, hash, kind, size, schema_version, encoding, payload, written_at)
    select $1, new.*, clock_timestamp()
    from unnest($2::bytea[], $3::smallint[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bytea[]) new
    on conflict (tenant, hash) do update set written_at = excluded.written_at
        where contents.written_at < excluded.written_at - interval '10 minutes'"
);

/// Waits for a sweep that removes one of the rows, and does not return that row.
const RENEW: &str = concat!(
    "with stored as materialized (
        select hash, kind, size, written_at from contents
        where tenant = $1 and hash = any ($2)
        order by hash
        for no key update
    ), renewed as (
        update contents set written_at = clock_timestamp()
        where tenant = $1 and hash in (
            select hash from stored where written_at < clock_timestamp() - interval '10 minutes')
        returning 1
    ), ",
    record_change!(" and exists (select from renewed)"),
    " select hash, kind, size from stored"
);

/// Inserts contents. If a content is stored already, updates the time of its last write.
pub(super) async fn contents_insert(
    store: &PostgresStore,
    tenant: &TenantId,
    rows: Vec<NewContentRow>,
) -> Result<(), StoreError> {
    let hashes: Vec<&[u8]> = rows.iter().map(|row| row.hash.as_bytes().as_slice()).collect();
    let payloads: Vec<&[u8]> = rows.iter().map(|row| row.payload.as_slice()).collect();
    let small = |column: fn(&NewContentRow) -> i16| rows.iter().map(column).collect::<Vec<_>>();
    let sizes: Vec<i64> = rows.iter().map(|row| row.size).collect();
    let insert = sqlx::query(INSERT)
        .bind(tenant.as_str())
        .bind(hashes)
        .bind(small(|row| row.kind))
        .bind(sizes)
        .bind(small(|row| row.schema_version))
        .bind(small(|row| row.encoding))
        .bind(payloads);
    let done = in_time(insert.execute(&store.pool)).await;
    done.map(drop).map_err(store_error(PUT))
}

/// Returns those contents that are stored. Updates the time of their last write.
pub(super) async fn contents_renew(
    store: &PostgresStore,
    tenant: &TenantId,
    hashes: &[Hash],
) -> Result<Vec<RenewedContentRow>, StoreError> {
    let failed = store_error(FIND_MISSING);
    let renew = Statement::with(FIND_MISSING, RENEW, values![tenant, HashList(hashes)]);
    let rows = in_time(renew.into_query().fetch_all(&store.pool))
        .await
        .map_err(&failed)?;
    rows.iter()
        .map(|row| RenewedContentRow::from_row(row).map_err(&failed))
        .collect()
}
