//! Inserts the progress of runs with one statement: of any number of runs, for each all or nothing.
//!
//! The statement locks the row of each run in the queue in share mode, so that no other worker
//! takes the run over meanwhile. It leaves out the runs whose lease is not in force.

use std::sync::OnceLock;

use async_trait::async_trait;
use sqlx::PgConnection;

use super::PostgresStore;
use super::arrays::{ColumnArrays, Number, decisions};
use super::batch_write::{BatchWrite, Outcome, WriteKey};
use super::timeouts::in_time;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::new_progress::{NewProgress, OPERATION};
use crate::rows::{LeaseKey, Row, Value};
use crate::sql::events_conflict;

/// Inserts the progress of a run, through the committer. Returns whether the lease is in force.
pub(super) async fn progress_insert(store: &PostgresStore, progress: NewProgress) -> Result<bool, StoreError> {
    let failed = store_error(OPERATION);
    let (progress, outcome) = store.committer.progress_insert(progress).await?;
    match outcome {
        Outcome::Decided(is_leased) => Ok(is_leased),
        Outcome::Failed(error) => Err(failed(error)),
        Outcome::Undecided => {
            // Never fails: the semaphore is never closed.
            let _permit = store.progress_writes.acquire().await;
            let inserting = in_time(async {
                let mut connection = store.pool.acquire().await?;
                NewProgress::execute_all(&mut connection, &[&progress]).await
            });
            Ok(inserting.await.map_err(failed)?.contains(&true))
        }
    }
}

#[async_trait]
impl BatchWrite for NewProgress {
    /// Whether the lease is in force.
    type Decision = bool;

    fn key(&self) -> Option<WriteKey> {
        Some(WriteKey::Progress(self.tenant.clone(), self.lease.run_id))
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<bool>, sqlx::Error> {
        let mut sorted: Vec<_> = writes.iter().zip(Number::all()).collect();
        sorted.sort_by_key(|(progress, _)| (&progress.tenant, progress.lease.run_id));
        let mut batch = Batch::default();
        for (progress, number) in &sorted {
            batch.leases.push(&progress.tenant, &[number, &progress.lease]);
            for entry in &progress.entries {
                batch.entries.push(&progress.tenant, &[number, entry]);
            }
            if let Some(events) = &progress.events {
                batch.events.push(&progress.tenant, &[number, events]);
            }
        }
        let query = sqlx::query(batch.statement());
        let query = batch.leases.bind_to(query);
        let query = batch.entries.bind_to(query);
        let query = batch.events.bind_to(query);
        let rows = query.fetch_all(connection).await?;
        decisions(&rows, writes.len(), |_| Ok(true))
    }
}

impl Row for LeaseKey {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("run_id", self.run_id.into());
        column("fence", self.fence.into());
    }
}

/// The rows of a batch. Entries and events have the number of their lease.
#[derive(Debug, Default)]
struct Batch<'v> {
    leases: ColumnArrays<'v>,
    entries: ColumnArrays<'v>,
    events: ColumnArrays<'v>,
}

impl Batch<'_> {
    /// Returns the text of the statement. It depends only on which tables have rows.
    fn statement(&self) -> &'static str {
        static TEXTS: [OnceLock<String>; 4] = [const { OnceLock::new() }; 4];
        let index = usize::from(!self.entries.is_empty()) + 2 * usize::from(!self.events.is_empty());
        TEXTS[index].get_or_init(|| self.build_statement())
    }

    fn build_statement(&self) -> String {
        let mut parts = vec![format!(
            "lease as materialized (
                select * from unnest({placeholders}) as lease ({columns})
            ), leased as materialized (
                select lease.* from lease cross join lateral (
                    select from run_queue q
                    where q.tenant = lease.tenant and q.run_id = lease.run_id and q.fence = lease.fence
                    for share
                ) queued
            )",
            placeholders = self.leases.placeholders(1),
            columns = self.leases.names(),
        )];
        let mut first = 1 + self.leases.width();
        if !self.entries.is_empty() {
            parts.push(format!(
                "new_entry as (
                    insert into run_journal (tenant, run_id, {columns_to_insert})
                    select tenant, run_id, {columns_to_select}
                    from unnest({placeholders}) as entry ({columns}) join leased using (tenant, number)
                    on conflict (tenant, run_id, sequence) do nothing
                )",
                placeholders = self.entries.placeholders(first),
                columns = self.entries.names(),
                columns_to_insert = self.entries.names_from("sequence", ""),
                columns_to_select = self.entries.names_from("sequence", "entry."),
            ));
            first += self.entries.width();
        }
        if !self.events.is_empty() {
            parts.push(format!(
                concat!(
                    "new_events as (
                        insert into run_events (tenant, run_id, {columns_to_insert})
                        select tenant, run_id, {columns_to_select}
                        from unnest({placeholders}) as events ({columns}) join leased using (tenant, number)",
                    events_conflict!(),
                    ")"
                ),
                placeholders = self.events.placeholders(first),
                columns = self.events.names(),
                columns_to_insert = self.events.names_from("first_sequence", ""),
                columns_to_select = self.events.names_from("first_sequence", "events."),
            ));
        }
        format!("with {} select number from leased", parts.join(", "))
    }
}
