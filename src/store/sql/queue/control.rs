//! Control of runs that have not ended: stop and cancel.

use crate::ids::RunId;
use crate::record::RunControl;
use crate::store::error::StoreError;
use crate::store::sql::connection::{Connection, Ended};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

const OPERATION: &str = "control run";

/// Stores how a run is to end.
pub(super) async fn run_control(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
    control: RunControl,
) -> Result<bool, StoreError> {
    let tenant = tenant.clone();
    engine
        .transact(OPERATION, move |connection| {
            Box::pin(control_in_txn(connection, tenant, run_id, control))
        })
        .await
}

async fn control_in_txn(
    mut connection: Connection<'_>,
    tenant: TenantId,
    run_id: RunId,
    control: RunControl,
) -> Result<Ended<bool>, sqlx::Error> {
    let statement = "update run_queue set control = case when control = 'cancel' then control else $3 end
        where tenant = $1 and run_id = $2";
    let update = Statement::new(OPERATION, statement)
        .bind_run_key(&tenant, run_id)
        .bind(control.as_str());
    let is_queued = connection.execute(update).await? > 0;
    Ok(if is_queued {
        Ended::CommittedForWorkers(true)
    } else {
        Ended::RolledBack(false)
    })
}
