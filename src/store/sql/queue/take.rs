//! Leases runs, and reads the database time.

use super::unreadable::set_aside;
use crate::clock::Timestamp;
use crate::store::error::StoreError;
use crate::store::queue::{LeaseChoice, LeaseTerms, LeasedRun};
use crate::store::rows::{LeasedRunRow, StoredTime};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;

/// The columns of `rows::LeasedRunRow` beside those of its run, which goes by `r`; its row of the
/// queue goes by `q`.
macro_rules! leased_columns {
    () => {
        "q.tenant as lease_tenant, q.run_id as lease_run_id, q.fence, cast(q.attempts as bigint) as lease_attempts, \
         cast(q.level as bigint) as level, q.turn, q.control, q.moves_thread, q.schema_version as request_version, q.encoding as request_encoding, q.request"
    };
}
pub(crate) use leased_columns;

/// Reads the database time.
pub(super) async fn lease_time<E: Engine>(engine: &E) -> Result<Timestamp, StoreError> {
    let row: Option<(StoredTime,)> = Statement::new("tell time", E::TIME).fetch_optional(engine).await?;
    row.map(|(time,)| time.0).ok_or_else(|| StoreError::Failed {
        operation: "tell time",
        source: "no row".into(),
    })
}

/// Leases runs. Sets those aside that can't be read, so that the others run.
pub(super) async fn run_lease(
    engine: &impl Engine,
    terms: LeaseTerms,
    choice: LeaseChoice,
) -> Result<Vec<LeasedRun>, StoreError> {
    loop {
        let mut rows = engine.run_lease(terms, choice.clone()).await?;
        rows.sort_by_key(LeasedRunRow::order);
        let found = rows.len();
        let mut leased = Vec::with_capacity(found);
        for row in rows {
            match row.read() {
                Ok(run) => leased.push(run),
                Err(unreadable) => set_aside(engine, terms, *unreadable).await,
            }
        }
        if found == 0 || !leased.is_empty() {
            return Ok(leased);
        }
        // Runs after those that can't be read must not wait for the next poll. The unreadable ones
        // are leased, so this loop ends.
    }
}
