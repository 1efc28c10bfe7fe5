//! Accepts and leases runs on PostgreSQL, with one statement each.
//!
//! Accepting takes a transaction instead if the run is on a thread, or if its tenant's waiting runs
//! are limited. Leasing uses `for update skip locked`, so concurrent workers do not wait for each
//! other.
//!
//! A run on a thread continues the session that the thread points to when it is first leased. The
//! lease shares the thread's row. So the thread can't move before the database shows what the run
//! continues.

use sqlx::FromRow as _;

use super::PostgresStore;
use super::patience::in_time;
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::queue::{LeaseChoice, LeaseTerms, SUSPECT_ATTEMPTS};
use crate::store::rows::{LeasedRunRow, StoredTime};
use crate::store::sql::{Attempt, Engine as _, Statement, enqueue_in_txn, leased_columns, rows_insert, run_columns};
use crate::store::turns::Turn;
use crate::tenant::TenantId;

/// Accepts a run. One on a thread takes a transaction, since who is active on the thread is decided under its lock; so does one of a tenant
/// whose waiting runs are limited.
pub(super) async fn run_insert(store: &PostgresStore, row: NewQueueRow) -> Result<Attempt, StoreError> {
    if row.thread.is_some() || row.max_waiting.is_some() {
        let waiting = async { Ok::<_, sqlx::Error>(acceptance_turn(store, &row).await) };
        let turn = in_time(waiting).await.map_err(store_error(OPERATION))?;
        return store
            .transact(OPERATION, move |connection| {
                Box::pin(async move {
                    let _turn = turn;
                    enqueue_in_txn(connection, row).await
                })
            })
            .await;
    }
    let inserting = in_time(async {
        let mut connection = store.pool.acquire().await?;
        rows_insert(&mut connection, &row).await
    });
    let inserted = inserting.await;
    // One whose answer is lost may have been accepted.
    if row.is_free() && !matches!(inserted, Ok(Some(_))) {
        store.wake_ups.send();
    }
    if let Some(in_the_way) = inserted.map_err(store_error(OPERATION))? {
        return Ok(in_the_way);
    }
    Ok(Attempt::Accepted {
        is_leased: row.lease.is_some(),
        interrupted: None,
    })
}

/// Waits for a turn to accept a run, if that takes a lock: of the tenant, whose limited runs are accepted one by one, or of the thread.
async fn acceptance_turn(store: &PostgresStore, row: &NewQueueRow) -> Option<Turn<(TenantId, String)>> {
    let thread = row.thread.as_ref().map(|thread| thread.as_str().to_owned());
    let lock = match row.max_waiting {
        // No thread has this name.
        Some(_) if thread.is_some() || row.lease.is_none() => Some(String::new()),
        _ => thread,
    };
    match lock {
        Some(lock) => Some(store.accepting.take((row.tenant.clone(), lock)).await),
        None => None,
    }
}

/// Leases the runs that were `picked`, and reads them. A run on a thread continues what the thread points to when it is leased first: whoever
/// moves the thread waits until that is known to those who remove sessions. A run that is still held goes on with nothing, since it
/// was cancelled.
macro_rules! lease_picked {
    () => {
        concat!(
            "q as (
                update run_queue q set fence = q.fence + 1, attempts = q.attempts + 1, leased_until = $2, owner = $3,
                    turn = coalesce(picked.turn, q.turn)
                from picked where q.tenant = picked.tenant and q.run_id = picked.run_id
                returning q.*, picked.is_expired
            ), place as materialized (
                select q.tenant, q.run_id, t.session_id
                from q join threads t on t.tenant = q.tenant and t.name = q.thread
                where q.fence = 1 and not q.is_held
                for share of t
            ), r as (
                update runs r set status = 'running', attempts = q.attempts,
                    started_at = coalesce(r.started_at, greatest(r.created_at, $1)),
                    base_session_id = case when place.run_id is null then r.base_session_id else place.session_id end
                from q left join place on place.tenant = q.tenant and place.run_id = q.run_id
                where r.tenant = q.tenant and r.run_id = q.run_id
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
///
/// `slot` has the next turns, and `chosen` the runs that get them: of each tenant as many as it has slots, those of the highest priority.
/// The runs that lose their slots get the turns of those that took them, so a tenant's turns stay what they were.
///
/// A planner takes a computed limit for a tenth of the queue. The further `limit $4` removes no row: it tells the planner that there are
/// few, so that the updates go by the primary keys.
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
    ), slot as materialized (
        select tenant, level, priority, turn, run_id from run_queue
        where leased_until is null and (not is_held or control = 'cancel')
        order by level desc, turn, run_id
        limit $4 - (select count(*) from expired)
        for update skip locked
    ), chosen as materialized (
        select best.* from (
            select tenant, level, count(*) as slots from (select * from slot limit $4) few group by tenant, level
        ) share
        cross join lateral (
            select tenant, level, priority, turn, run_id from run_queue
            where tenant = share.tenant and level = share.level
                and leased_until is null and (not is_held or control = 'cancel')
            order by priority desc, run_id
            limit share.slots
            for update skip locked
        ) best
    ), involved as (
        select *, exists (select from chosen where (chosen.tenant, chosen.run_id) = (found.tenant, found.run_id)) as is_chosen
        from ((select * from slot limit $4) union (select * from chosen limit $4)) found
    ), placed as (
        select *, row_number() over (
            partition by tenant, level order by is_chosen desc, priority desc, run_id) as place
        from involved
    ), turns as (
        select tenant, level, turn, row_number() over (partition by tenant, level order by turn) as place from involved
    ), given as (
        select placed.tenant, placed.run_id, placed.is_chosen, turns.turn from placed join turns using (tenant, level, place)
    ), outdone as (
        update run_queue q set turn = given.turn from given
        where not given.is_chosen and q.tenant = given.tenant and q.run_id = given.run_id
    ), picked as (
        select tenant, run_id, true as is_expired, null::bigint as turn from expired
        union all
        select tenant, run_id, false, turn from given where is_chosen
        limit $4
    ), ",
    lease_picked!()
);

/// Leases one run.
const LEASE_THIS: &str = concat!(
    "with picked as materialized (
        select tenant, run_id, false as is_expired, turn from run_queue
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
