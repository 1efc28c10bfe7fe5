//! Prepares a restored database, in one transaction.

use async_trait::async_trait;

use super::audit::record;
use super::connection::Ended;
use super::engine::Engine;
use super::statement::Statement;
use crate::audit::{Act, AuditAction, Requester};
use crate::error::StoreError;
use crate::restore::{RestoreFigures, RestoreStore};
use crate::rows::values;

const OPERATION: &str = "finish restore";

/// More than the leases that a run had after the backup.
const RAISE: i64 = 1 << 32;

const GIVE_UP: &str = "update webhook_deliveries
    set status = 'dead', due_at = null, owner = null,
        error = 'not sent after a restore: it may have been sent after the backup'
    where status = 'pending'";

#[async_trait]
impl<E: Engine> RestoreStore for E {
    async fn restore_finish(&self, by: &Requester) -> Result<RestoreFigures, StoreError> {
        let by = by.clone();
        let finishing = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(
                    &mut connection,
                    &Act::of_service(&by, AuditAction::RestoreFinished, "store"),
                )
                .await?;
                let raise = Statement::with(
                    OPERATION,
                    "update run_queue set fence = fence + $1, owner = null,
                        leased_until = case when leased_until is null then null else $2 end",
                    values![RAISE, by.at],
                );
                Ok(Ended::CommittedForWorkers(RestoreFigures {
                    runs: connection.execute(raise).await?,
                    deliveries: connection.execute(Statement::new(OPERATION, GIVE_UP)).await?,
                    console_sessions: connection
                        .execute(Statement::new(OPERATION, "delete from console_sessions"))
                        .await?,
                }))
            })
        });
        finishing.await
    }
}
