//! Leases runs on SQLite, with several statements in a transaction, since SQLite allows no `update`
//! inside a `with` clause.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::queue::{LeaseChoice, LeaseTerms, SUSPECT_ATTEMPTS};
use crate::rows::{LeasedRunRow, RunRow, values};
use crate::sql::{Connection, Ended, LEASE, Statement, leased_columns, sql};

const EXPIRED: &str = "select tenant, run_id, attempts >= $3 from run_queue
    where leased_until < $1 and (attempts < $3 or $2)
    order by leased_until
    limit 1";

/// Selects the next turns of all tenants.
const SLOTS: &str = "select tenant, level, turn, run_id from run_queue
    where leased_until is null and (not is_held or control = 'cancel')
    order by level desc, turn, run_id
    limit $1";

/// Selects the runs of a tenant that get its next turns.
const CHOSEN: &str = "select run_id, turn from run_queue
    where tenant = $1 and level = $2 and leased_until is null and (not is_held or control = 'cancel')
    order by priority desc, run_id
    limit $3";

const THIS: &str = "select tenant, run_id from run_queue
    where tenant = $1 and run_id = $2 and owner is null and (not is_held or control = 'cancel')";

const READ: &str = sql!(
    "select $3 as is_expired, ",
    leased_columns!(),
    ", ",
    RunRow::COLUMNS,
    " from run_queue q left join runs r on r.tenant = q.tenant and r.run_id = q.run_id where q.tenant = $1 and q.run_id = $2"
);

/// Leases runs: first runs whose lease has expired, then waiting ones.
pub(in crate::sqlite) async fn lease_in_txn(
    mut connection: Connection<'_>,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Ended<Vec<LeasedRunRow>>, sqlx::Error> {
    let mut leased = Vec::new();
    match choice {
        LeaseChoice::This(tenant, run_id) => {
            let this = Statement::with(LEASE, THIS, values![&tenant, run_id]);
            if let Some((tenant, run_id)) = connection.fetch_optional::<(String, Uuid)>(this).await? {
                leased.extend(lease(&mut connection, terms, (&tenant, run_id), false).await?);
            }
        }
        LeaseChoice::Next(limits) => {
            let limit = limits.runs as usize;
            let mut suspects = limits.suspects;
            // Each run is leased before the search for the next one.
            while leased.len() < limit
                && let Some((tenant, run_id, is_suspect)) = expired(&mut connection, terms, suspects > 0).await?
            {
                suspects -= u32::from(is_suspect);
                leased.extend(lease(&mut connection, terms, (&tenant, run_id), true).await?);
            }
            for (tenant, run_id) in assign_turns(&mut connection, limit - leased.len()).await? {
                leased.extend(lease(&mut connection, terms, (&tenant, run_id), false).await?);
            }
        }
    }
    Ok(if leased.is_empty() {
        Ended::RolledBack(leased)
    } else {
        Ended::Committed(leased)
    })
}

/// Finds a run whose lease has expired: its tenant, its id, and whether it is suspect.
async fn expired(
    connection: &mut Connection<'_>,
    terms: LeaseTerms,
    with_suspects: bool,
) -> Result<Option<(String, Uuid, bool)>, sqlx::Error> {
    let values = values![terms.now, with_suspects, SUSPECT_ATTEMPTS];
    connection.fetch_optional(Statement::with(LEASE, EXPIRED, values)).await
}

/// Gives the next turns of each tenant to its runs with the highest priority, and returns these
/// runs. A run that loses its slot gets the turn of the run that took it, so a tenant has the same
/// turns as before.
async fn assign_turns(connection: &mut Connection<'_>, limit: usize) -> Result<Vec<(String, Uuid)>, sqlx::Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let select = Statement::with(LEASE, SLOTS, values![limit as u64]);
    let slots: Vec<(String, i64, i64, Uuid)> = connection.fetch_all(select).await?;
    let mut shares: BTreeMap<(String, i64), Vec<(Uuid, i64)>> = BTreeMap::new();
    for (tenant, level, turn, run_id) in slots {
        shares.entry((tenant, level)).or_default().push((run_id, turn));
    }
    let mut picked = Vec::new();
    for ((tenant, level), slots) in shares {
        let select = Statement::with(LEASE, CHOSEN, values![&tenant, level, slots.len() as u64]);
        let chosen: Vec<(Uuid, i64)> = connection.fetch_all(select).await?;
        let is_chosen = |run_id: &Uuid| chosen.iter().any(|(chosen, _)| chosen == run_id);
        let outdone: Vec<_> = slots.iter().copied().filter(|(run_id, _)| !is_chosen(run_id)).collect();
        // There are as many chosen runs as slots. So the runs that lost a slot get the turns of the
        // chosen runs that had none.
        let taken = chosen.iter().copied().filter(|run| !slots.contains(run));
        let turns = slots.iter().copied().chain(taken).map(|(_, turn)| turn);
        let placed = chosen.iter().chain(&outdone).zip(turns);
        for ((run_id, _), turn) in placed.filter(|((_, old), turn)| old != turn) {
            let statement = "update run_queue set turn = $3 where tenant = $1 and run_id = $2";
            let update = Statement::with(LEASE, statement, values![&tenant, *run_id, turn]);
            connection.execute(update).await?;
        }
        picked.extend(chosen.into_iter().map(|(run_id, _)| (tenant.clone(), run_id)));
    }
    Ok(picked)
}

async fn lease(
    connection: &mut Connection<'_>,
    terms: LeaseTerms,
    (tenant, run_id): (&str, Uuid),
    is_expired: bool,
) -> Result<Option<LeasedRunRow>, sqlx::Error> {
    let owner = terms.worker.to_string();
    let statement = "update run_queue set fence = fence + 1, attempts = attempts + 1, leased_until = $3, owner = $4
        where tenant = $1 and run_id = $2";
    let update = Statement::with(LEASE, statement, values![tenant, run_id, terms.until, &owner]);
    connection.execute(update).await?;
    // At its first lease, a run that follows a thread continues the session to which the thread
    // points, unless the run was cancelled while it waited.
    let statement = "update runs set status = 'running', attempts = q.attempts,
            started_at = coalesce(started_at, max(created_at, $3)),
            base_session_id = case
                when q.fence = 1 and not q.is_held and q.follows_thread and exists (
                    select 1 from threads t where t.tenant = q.tenant and t.name = q.thread)
                then (select t.session_id from threads t where t.tenant = q.tenant and t.name = q.thread)
                else base_session_id
            end
        from run_queue q
        where runs.tenant = $1 and runs.run_id = $2 and q.tenant = $1 and q.run_id = $2";
    let update = Statement::with(LEASE, statement, values![tenant, run_id, terms.now]);
    connection.execute(update).await?;
    let read = Statement::with(LEASE, READ, values![tenant, run_id, is_expired]);
    connection.fetch_optional(read).await
}
