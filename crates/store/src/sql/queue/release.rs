//! Releases of leases.

use crate::error::StoreError;
use crate::rows::{LeaseKey, StoredTime, values};
use crate::sql::connection::Ended;
use crate::sql::engine::Engine;
use crate::sql::statement::Statement;
use agent::record::RunStatus;
use values::clock::Timestamp;

/// Increments the fence token as well, so that the former lease holder can't write any more. From
/// now on the run waits for a worker. Between the texts comes the time of the database.
const RELEASE: [&str; 2] = [
    "update run_queue set
        enqueued_at = (",
    "), leased_until = null, owner = null, attempts = attempts - 1, fence = fence + 1,
        turn = coalesce((
            select w.turn from run_queue w
            where w.level = run_queue.level and w.leased_until is null
                and (not w.is_held or w.control = 'cancel') and w.turn < run_queue.turn
            order by w.turn
            limit 1
        ), turn)
    where tenant = $1 and run_id = $2 and fence = $3
    returning attempts",
];

const DEFER: &str = "update run_queue set
        leased_until = $4, owner = null, attempts = attempts - 1, fence = fence + 1
    where tenant = $1 and run_id = $2 and fence = $3
    returning attempts";

/// Releases a run. If a time is given, the run can't be leased before it.
pub(super) async fn lease_release<E: Engine>(
    engine: &E,
    key: LeaseKey,
    until: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let operation = if until.is_some() { "defer run" } else { "release lease" };
    let releasing = engine.transact(operation, move |mut connection| {
        Box::pin(async move {
            let release = match until {
                None => {
                    let [begin, rest] = RELEASE;
                    let mut release = Statement::new(operation, begin).bind_key(&key);
                    release.push(E::TIME);
                    release.push(rest);
                    release
                }
                Some(until) => Statement::new(operation, DEFER).bind_key(&key).bind(StoredTime(until)),
            };
            let Some((attempts,)): Option<(i32,)> = connection.fetch_optional(release).await? else {
                return Ok(Ended::RolledBack(false));
            };
            let statement = "update runs set status = $3, attempts = $4 where tenant = $1 and run_id = $2";
            let values = values![&key.tenant, key.run_id, RunStatus::Queued.as_str(), attempts];
            connection
                .execute(Statement::with(operation, statement, values))
                .await?;
            Ok(match until {
                None => Ended::CommittedForWorkers(true),
                Some(_) => Ended::Committed(true),
            })
        })
    });
    releasing.await
}
