//! The usage of a run at work.

use crate::record::RunStatus;
use crate::store::error::StoreError;
use crate::store::queue::Lease;
use crate::store::rows::stored_count;
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::usage::{Cost, Usage};

/// Persists the usage with one statement. The row of the queue is shared, so nobody takes the run
/// over meanwhile. A final record does not change, even if this waited for the transaction that
/// ended the run.
pub(super) async fn usage_update<E: Engine>(engine: &E, lease: &Lease, usage: &Usage) -> Result<bool, StoreError> {
    let statement = "update runs set
            input_tokens = $4, output_tokens = $5, cache_read_tokens = $6, cache_write_tokens = $7,
            reasoning_tokens = $8, total_tokens = $9, cost = $10, cost_known_part = $11
        where tenant = $1 and run_id = $2 and status = $12
            and exists (select 1 from run_queue where tenant = $1 and run_id = $2 and fence = $3";
    let mut update = Statement::new("update usage", statement)
        .bind_lease(lease)
        .bind(stored_count(usage.input_tokens))
        .bind(stored_count(usage.output_tokens))
        .bind(stored_count(usage.cache_read_tokens))
        .bind(stored_count(usage.cache_write_tokens))
        .bind(stored_count(usage.reasoning_tokens))
        .bind(stored_count(usage.total_tokens))
        .bind(usage.cost.map(Cost::dollars))
        .bind(usage.cost_known_part.map(Cost::dollars))
        .bind(RunStatus::Running.as_str());
    update.push(E::SHARE);
    update.push(")");
    // The semaphore is never closed.
    let _permit = engine.progress_writes().acquire().await;
    Ok(update.execute(engine).await? > 0)
}
