//! Accepting and leasing runs on PostgreSQL: one statement each, beside those that a thread takes.

use sqlx::FromRow as _;

use super::PostgresStore;
use super::patience::in_time;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{LeaseChoice, LeaseTerms, SUSPECT_ATTEMPTS};
use crate::store::rows::{LeasedRunRow, StoredTime};
use crate::store::sql::{Attempt, Engine as _, Statement, enqueue_in_txn, leased_columns, rows_insert, run_columns};

/// Accepts a run. One on a thread takes a transaction, since who is active on the thread is decided under its lock.
pub(super) async fn run_insert(store: &PostgresStore, row: NewQueueRow) -> Result<Attempt, StoreError> {
    if row.thread.is_some() {
        return store
            .transact(OPERATION, move |connection| Box::pin(enqueue_in_txn(connection, row)))
            .await;
    }
    let inserting = in_time(async {
        let mut connection = store.pool.acquire().await?;
        rows_insert(&mut connection, &row).await
    });
    let inserted = inserting.await.map_err(store_error(OPERATION))?;
    Ok(inserted.unwrap_or(Attempt::Accepted {
        is_leased: row.lease.is_some(),
        interrupted: None,
    }))
}

/// Leases the runs that were `picked`, and reads them. A run on a thread continues what the thread points to when it is leased first.
macro_rules! lease_picked {
    () => {
        concat!(
            "q as (
                update run_queue q set fence = q.fence + 1, attempts = q.attempts + 1, leased_until = $2, owner = $3
                from picked where q.tenant = picked.tenant and q.run_id = picked.run_id
                returning q.*, picked.is_expired
            ), r as (
                update runs r set status = 'running', attempts = q.attempts,
                    started_at = coalesce(r.started_at, greatest(r.created_at, $1)),
                    base_session_id = case
                        when q.fence = 1 and exists (
                            select from threads t where t.tenant = q.tenant and t.name = q.thread)
                        then (select t.session_id from threads t where t.tenant = q.tenant and t.name = q.thread)
                        else r.base_session_id
                    end
                from q where r.tenant = q.tenant and r.run_id = q.run_id
                returning r.*
            )
            select q.is_expired, ",
            leased_columns!(),
            ", ",
            run_columns!(),
            " from q left join r on r.tenant = q.tenant and r.run_id = q.run_id"
        )
    };
}

/// Leases the next runs. What others are about to lease is passed over.
const LEASE_NEXT: &str = concat!(
    "with suspect as materialized (
        select tenant, run_id from run_queue where leased_until < $1 and attempts >= $6
        order by leased_until
        limit $5
        for update skip locked
    ), unsuspected as materialized (
        select tenant, run_id from run_queue where leased_until < $1 and attempts < $6
        order by leased_until
        limit $4 - (select count(*) from suspect)
        for update skip locked
    ), expired as (
        select * from suspect
        union all
        select * from unsuspected
    ), waiting as materialized (
        select tenant, run_id from run_queue where leased_until is null and (not is_held or control = 'cancel')
        order by priority desc, turn, run_id
        limit $4 - (select count(*) from expired)
        for update skip locked
    ), picked as (
        select tenant, run_id, true as is_expired from expired
        union all
        select tenant, run_id, false from waiting
    ), ",
    lease_picked!()
);

/// Leases one run.
const LEASE_THIS: &str = concat!(
    "with picked as materialized (
        select tenant, run_id, false as is_expired from run_queue
        where tenant = $4 and run_id = $5 and owner is null and (not is_held or control = 'cancel')
        for update skip locked
    ), ",
    lease_picked!()
);

/// Leases runs, in no order.
pub(super) async fn run_lease(
    store: &PostgresStore,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Vec<LeasedRunRow>, StoreError> {
    let failed = store_error("lease runs");
    let owner = terms.worker.to_string();
    let statement = match choice {
        LeaseChoice::Next(_) => LEASE_NEXT,
        LeaseChoice::This(..) => LEASE_THIS,
    };
    let lease = Statement::new("lease runs", statement)
        .bind(StoredTime(terms.now))
        .bind(StoredTime(terms.until))
        .bind(owner.as_str());
    let lease = match &choice {
        LeaseChoice::Next(limits) => lease
            .bind(i64::from(limits.runs))
            .bind(i64::from(limits.suspects.min(limits.runs)))
            .bind(i64::from(SUSPECT_ATTEMPTS)),
        LeaseChoice::This(tenant, run_id) => lease.bind_run_key(tenant, *run_id),
    };
    let rows = in_time(lease.into_query().fetch_all(&store.pool))
        .await
        .map_err(&failed)?;
    rows.iter()
        .map(|row| LeasedRunRow::from_row(row).map_err(&failed))
        .collect()
}
