//! Leasing runs on SQLite, which returns no rows of one statement to another: one by one, in a transaction.

use uuid::Uuid;

use crate::store::queue::{LeaseChoice, LeaseTerms, SUSPECT_ATTEMPTS};
use crate::store::rows::{LeasedRunRow, StoredTime};
use crate::store::sql::{Connection, Ended, Statement, leased_columns, run_columns};

/// What leasing is called in errors.
pub(super) const LEASE: &str = "lease runs";

const EXPIRED: &str = "select tenant, run_id, attempts >= $3 from run_queue
    where leased_until < $1 and (attempts < $3 or $2)
    order by leased_until
    limit 1";

const WAITING: &str = "select tenant, run_id from run_queue
    where leased_until is null and (not is_held or control = 'cancel')
    order by priority desc, turn, run_id
    limit 1";

const THIS: &str = "select tenant, run_id from run_queue
    where tenant = $1 and run_id = $2 and owner is null and (not is_held or control = 'cancel')";

const READ: &str = concat!(
    "select $3 as is_expired, ",
    leased_columns!(),
    ", ",
    run_columns!(),
    " from run_queue q left join runs r on r.tenant = q.tenant and r.run_id = q.run_id where q.tenant = $1 and q.run_id = $2"
);

/// Leases runs: each that is picked is leased before the next is looked for.
pub(super) async fn lease_in_txn(
    mut connection: Connection<'_>,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Ended<Vec<LeasedRunRow>>, sqlx::Error> {
    let (limit, mut suspects) = match choice {
        LeaseChoice::Next(limits) => (limits.runs as usize, limits.suspects),
        LeaseChoice::This(..) => (1, 0),
    };
    let mut leased = Vec::new();
    while leased.len() < limit
        && let Some(picked) = pick(&mut connection, terms, &choice, suspects > 0).await?
    {
        suspects -= u32::from(picked.is_suspect);
        leased.extend(lease(&mut connection, terms, &picked).await?);
    }
    Ok(if leased.is_empty() {
        Ended::Undone(leased)
    } else {
        Ended::Kept(leased)
    })
}

/// A run that is to be leased.
struct Picked {
    tenant: String,
    run_id: Uuid,
    /// Whether its lease has expired.
    is_expired: bool,
    is_suspect: bool,
}

/// Returns the next run of the choice.
async fn pick(
    connection: &mut Connection<'_>,
    terms: LeaseTerms,
    choice: &LeaseChoice,
    with_suspects: bool,
) -> Result<Option<Picked>, sqlx::Error> {
    let waiting = match choice {
        LeaseChoice::This(tenant, run_id) => Statement::new(LEASE, THIS).bind_run_key(tenant, *run_id),
        LeaseChoice::Next(_) => {
            let expired = Statement::new(LEASE, EXPIRED)
                .bind(StoredTime(terms.now))
                .bind(with_suspects)
                .bind(i64::from(SUSPECT_ATTEMPTS));
            if let Some((tenant, run_id, is_suspect)) = connection.fetch_optional(expired).await? {
                return Ok(Some(Picked {
                    tenant,
                    run_id,
                    is_expired: true,
                    is_suspect,
                }));
            }
            Statement::new(LEASE, WAITING)
        }
    };
    let picked: Option<(String, Uuid)> = connection.fetch_optional(waiting).await?;
    Ok(picked.map(|(tenant, run_id)| Picked {
        tenant,
        run_id,
        is_expired: false,
        is_suspect: false,
    }))
}

async fn lease(
    connection: &mut Connection<'_>,
    terms: LeaseTerms,
    picked: &Picked,
) -> Result<Option<LeasedRunRow>, sqlx::Error> {
    let (tenant, run_id) = (picked.tenant.as_str(), picked.run_id);
    let owner = terms.worker.to_string();
    let statement = "update run_queue set fence = fence + 1, attempts = attempts + 1, leased_until = $3, owner = $4
        where tenant = $1 and run_id = $2";
    let update = Statement::new(LEASE, statement)
        .bind(tenant)
        .bind(run_id)
        .bind(StoredTime(terms.until))
        .bind(owner.as_str());
    connection.execute(update).await?;
    // A run on a thread continues what the thread points to when it is leased first.
    let statement = "update runs set status = 'running', attempts = q.attempts,
            started_at = coalesce(started_at, max(created_at, $3)),
            base_session_id = case
                when q.fence = 1 and exists (
                    select 1 from threads t where t.tenant = q.tenant and t.name = q.thread)
                then (select t.session_id from threads t where t.tenant = q.tenant and t.name = q.thread)
                else base_session_id
            end
        from run_queue q
        where runs.tenant = $1 and runs.run_id = $2 and q.tenant = $1 and q.run_id = $2";
    let update = Statement::new(LEASE, statement)
        .bind(tenant)
        .bind(run_id)
        .bind(StoredTime(terms.now));
    connection.execute(update).await?;
    let read = Statement::new(LEASE, READ)
        .bind(tenant)
        .bind(run_id)
        .bind(picked.is_expired);
    connection.fetch_optional(read).await
}
