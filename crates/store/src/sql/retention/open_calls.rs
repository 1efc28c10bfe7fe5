//! Takes the runs whose open calls have expired out of the indexes of waiting runs. A run keeps the
//! status `waiting` until it is answered, and its record has the times at which the calls expired.
//!
//! All other ends take a run out of the indexes by themselves: answers change its status, and a
//! removal deletes its row. If the run with the answers fails, the calls are open again, and a
//! later sweep finds them.

use crate::error::StoreError;
use crate::rows::{StoredTime, values};
use crate::sql::{Engine, Statement};

const OPERATION: &str = "sweep open calls";

/// Takes runs out of one of the indexes: up to `$2` whose calls have expired at `$1`.
/// [`Engine::SKIP_LOCKED`] and [`END`] follow. Skips runs that others answer or remove meanwhile.
macro_rules! expire {
    ($until:literal) => {
        concat!(
            "update runs set ",
            $until,
            " = null where (tenant, run_id) in (
                select r.tenant, r.run_id from runs r where r.status = 'waiting' and r.",
            $until,
            " <= $1 limit $2"
        )
    };
}

const EXPIRE: [&str; 2] = [expire!("person_until"), expire!("client_until")];
const END: &str = ")";

/// Takes up to `limit` runs out of each index. Returns whether there may be more.
pub(super) async fn sweep_open_calls<E: Engine>(engine: &E, now: StoredTime, limit: i64) -> Result<bool, StoreError> {
    let mut may_have_more = false;
    for text in EXPIRE {
        let expired = expire_statement::<E>(text, now, limit).execute(engine).await?;
        may_have_more |= i64::try_from(expired).is_ok_and(|expired| expired >= limit);
    }
    Ok(may_have_more)
}

fn expire_statement<E: Engine>(text: &'static str, now: StoredTime, limit: i64) -> Statement<'static> {
    let mut update = Statement::with(OPERATION, text, values![now, limit]);
    update.push(E::SKIP_LOCKED);
    update.push(END);
    update
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;
    use values::clock::Timestamp;

    #[tokio::test]
    async fn expired_calls_are_found_in_their_indexes_on_sqlite() {
        for (text, index) in EXPIRE
            .into_iter()
            .zip(["runs_waiting_for_person", "runs_waiting_for_client"])
        {
            let update = expire_statement::<SqliteStore>(text, StoredTime(Timestamp::UNIX_EPOCH), 3);
            assert_eq!(update.sqlite_indexes().await, ["sqlite_autoindex_runs_1", index]);
        }
    }
}
