//! Leases runs on PostgreSQL, with one statement.

use sqlx::FromRow as _;

use super::super::PostgresStore;
use super::super::timeouts::in_time;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::queue::{LeaseChoice, LeaseTerms, SUSPECT_ATTEMPTS};
use crate::rows::{LeasedRunRow, RunRow, values};
use crate::sql::{LEASE, Statement, leased_columns, sql};

/// Leases the `picked` runs and reads them. A run that follows a thread continues the session to
/// which the thread points at its first lease. Locks the thread in share mode, so that it can't
/// move before removals see that the run needs this session. A run that still waits for its thread
/// was cancelled, and keeps the base of its record.
const LEASE_PICKED: &str = sql!(
    "q as (
                update run_queue q set fence = q.fence + 1, attempts = q.attempts + 1, leased_until = $2, owner = $3,
                    turn = coalesce(picked.turn, q.turn)
                from picked where q.tenant = picked.tenant and q.run_id = picked.run_id
                returning q.*, picked.is_expired
            ), start as materialized (
                select q.tenant, q.run_id, t.session_id
                from q join threads t on t.tenant = q.tenant and t.name = q.thread
                where q.fence = 1 and not q.is_held and q.follows_thread
                for share of t
            ), r as (
                update runs r set status = 'running', attempts = q.attempts,
                    started_at = coalesce(r.started_at, greatest(r.created_at, $1)),
                    base_session_id = case when start.run_id is null then r.base_session_id else start.session_id end
                from q left join start on start.tenant = q.tenant and start.run_id = q.run_id
                where r.tenant = q.tenant and r.run_id = q.run_id
                returning r.*
            )
            select q.is_expired, ",
    leased_columns!(),
    ", ",
    RunRow::COLUMNS,
    " from q left join r on r.tenant = q.tenant and r.run_id = q.run_id"
);

/// Leases the next runs. Skips runs that other workers are leasing. This lock does not conflict
/// with the key lock of a request that accepts a run behind an active one.
///
/// `slot` has the next turns. `chosen` has the runs that get them: for each tenant, as many as it
/// has slots, by priority. A run that loses its slot gets the turn of the run that took it, so a
/// tenant has the same turns as before.
///
/// The planner estimates a computed limit as a tenth of the queue. The additional `limit $4`
/// removes no row. It tells the planner that there are few rows, so that the updates use the
/// primary keys.
const LEASE_NEXT: &str = sql!(
    "with suspect as materialized (
        select tenant, run_id from run_queue where leased_until < $1 and attempts >= $6
        order by leased_until
        limit $5
        for no key update skip locked
    ), unsuspected as materialized (
        select tenant, run_id from run_queue where leased_until < $1 and attempts < $6
        order by leased_until
        limit $4 - (select count(*) from suspect)
        for no key update skip locked
    ), expired as (
        select * from suspect
        union all
        select * from unsuspected
    ), slot as materialized (
        select tenant, level, priority, turn, run_id from run_queue
        where leased_until is null and (not is_held or control = 'cancel')
        order by level desc, turn, run_id
        limit $4 - (select count(*) from expired)
        for no key update skip locked
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
            for no key update skip locked
        ) best
    ), involved as (
        select *, exists (select from chosen where (chosen.tenant, chosen.run_id) = (found.tenant, found.run_id)) as is_chosen
        from ((select * from slot limit $4) union (select * from chosen limit $4)) found
    ), ranked as (
        select *, row_number() over (
            partition by tenant, level order by is_chosen desc, priority desc, run_id) as rank
        from involved
    ), turns as (
        select tenant, level, turn, row_number() over (partition by tenant, level order by turn) as rank from involved
    ), given as (
        select ranked.tenant, ranked.run_id, ranked.is_chosen, turns.turn from ranked join turns using (tenant, level, rank)
    ), outdone as (
        update run_queue q set turn = given.turn from given
        where not given.is_chosen and q.tenant = given.tenant and q.run_id = given.run_id
    ), picked as (
        select tenant, run_id, true as is_expired, null::bigint as turn from expired
        union all
        select tenant, run_id, false, turn from given where is_chosen
        limit $4
    ), ",
    LEASE_PICKED
);

/// Leases one run.
const LEASE_THIS: &str = sql!(
    "with picked as materialized (
        select tenant, run_id, false as is_expired, turn from run_queue
        where tenant = $4 and run_id = $5 and owner is null and (not is_held or control = 'cancel')
        for no key update skip locked
    ), ",
    LEASE_PICKED
);

/// Leases runs, in no order.
pub(in crate::postgres) async fn run_lease(
    store: &PostgresStore,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Vec<LeasedRunRow>, StoreError> {
    let failed = store_error(LEASE);
    let owner = terms.worker.to_string();
    let statement = match choice {
        LeaseChoice::Next(_) => LEASE_NEXT,
        LeaseChoice::This(..) => LEASE_THIS,
    };
    let lease = Statement::with(LEASE, statement, values![terms.now, terms.until, &owner]);
    let lease = match &choice {
        LeaseChoice::Next(limits) => lease
            .bind(limits.runs)
            .bind(limits.suspects.min(limits.runs))
            .bind(SUSPECT_ATTEMPTS),
        LeaseChoice::This(tenant, run_id) => lease.bind(tenant).bind(*run_id),
    };
    let rows = in_time(lease.into_query().fetch_all(&store.pool))
        .await
        .map_err(&failed)?;
    rows.iter()
        .map(|row| LeasedRunRow::from_row(row).map_err(&failed))
        .collect()
}
