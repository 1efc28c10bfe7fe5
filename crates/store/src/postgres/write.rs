//! Executes a write in a batch, or alone. The acceptance and the progress of runs have no other way
//! to the database.

use tokio::sync::Semaphore;

use super::PostgresStore;
use super::batch_write::BatchWrite;
use super::committer::{AnyWrite, Submitted};
use super::timeouts::in_time;
use crate::error::StoreError;

impl PostgresStore {
    /// Executes a write in a batch. If no batch decides about it, executes it alone on a connection
    /// of the pool, with a permit if these are given. Returns it with the decision.
    pub(super) async fn write<W: BatchWrite>(
        &self,
        write: W,
        kind: fn(Box<Submitted<W>>) -> AnyWrite,
        permits: Option<&Semaphore>,
    ) -> Result<(W, Result<W::Decision, sqlx::Error>), StoreError> {
        let (write, outcome) = self.committer.execute(write, kind).await?;
        if let Some(decided) = outcome {
            return Ok((write, decided));
        }
        let _permit = match permits {
            // Never fails: the semaphore is never closed.
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        let executing = in_time(async {
            let mut connection = self.pool.acquire().await?;
            write.execute(&mut connection).await
        });
        let decided = executing.await;
        Ok((write, decided))
    }
}
