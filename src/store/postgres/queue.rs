//! Accepting and leasing runs on PostgreSQL: one statement each.

use sqlx::FromRow as _;

use super::PostgresStore;
use crate::store::driver_error::{is_unique_violation, store_error};
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{LeaseChoice, LeaseTerms};
use crate::store::rows::{LeasedRunRow, StoredTime};
use crate::store::sql::{Attempt, Engine as _, Statement, enqueue_in_txn, leased_columns, next_turn, run_columns};

/// Accepts a run that is on no thread; answers no row when its key is taken. What a worker may lease at once is told to all.
const INSERT: &str = concat!(
    "with claimed as (
        insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        select $1, $44, $2, $45, $46 where $44 is not null
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= $37
        returning 1
    ), accepted as (
        select 1 where $44 is null or exists (select from claimed)
    ), run as (
        insert into runs (
            tenant, run_id, session_id, base_session_id, agent, agent_version, model, mode, status, stop_reason,
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, total_tokens, cost,
            step_count, error, metadata, created_at, started_at, completed_at, schema_version, output_encoding,
            steps_encoding, output, steps, event_count, attempts, durability, thread)
        select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
            $23, $24, $25, $26, $27, $28, $29, $30, $31, $32
        from accepted
    ), queued as (
        insert into run_queue (
            tenant, run_id, thread, priority, is_held, moves_thread, enqueued_at, fence, attempts, leased_until, owner,
            schema_version, encoding, request, turn)
        select $1, $2, $33, $34, $35, $36, $37, $38, $38, $39, $40, $41, $42, $43, ",
    next_turn!("$1", "$34"),
    " from accepted
    )
    select case when $39 is null then pg_notify('agent_runtime_queue', '')::text end from accepted"
);

/// Accepts a run.
pub(super) async fn run_insert(store: &PostgresStore, row: NewQueueRow) -> Result<Attempt, StoreError> {
    if row.thread.is_some() {
        return store
            .transact(OPERATION, move |connection| Box::pin(enqueue_in_txn(connection, row)))
            .await;
    }
    let owner = row.owner();
    let key = row.idempotency.as_ref();
    let insert = Statement::new(OPERATION, INSERT)
        .bind(row.tenant.as_str())
        .bind_run(Some(&row.run))
        .bind_queue_row(&row, owner.as_deref())
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| key.digest.as_bytes().as_slice()))
        .bind(key.map(|key| StoredTime(key.expires_at)));
    match insert.into_query().fetch_optional(&store.pool).await {
        Ok(Some(_)) => Ok(Attempt::Accepted {
            is_leased: row.lease.is_some(),
            interrupted: None,
        }),
        Ok(None) => Ok(Attempt::KeyTaken),
        Err(error) if is_unique_violation(&error) => Ok(Attempt::Exists),
        Err(error) => Err(store_error(OPERATION)(error)),
    }
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
            " from q join r on r.tenant = q.tenant and r.run_id = q.run_id"
        )
    };
}

/// Leases the next runs. What others are about to lease is passed over.
const LEASE_NEXT: &str = concat!(
    "with expired as materialized (
        select tenant, run_id from run_queue where leased_until < $1
        order by leased_until
        limit $4
        for update skip locked
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
        where tenant = $4 and run_id = $5 and leased_until is null and (not is_held or control = 'cancel')
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
        LeaseChoice::Next(limit) => lease.bind(i64::from(*limit)),
        LeaseChoice::This(tenant, run_id) => lease.bind_run_key(tenant, *run_id),
    };
    let rows = lease.into_query().fetch_all(&store.pool).await.map_err(&failed)?;
    rows.iter()
        .map(|row| LeasedRunRow::from_row(row).map_err(&failed))
        .collect()
}
