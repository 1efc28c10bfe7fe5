//! Inserts the progress of runs with one statement: of any number of runs, for each all or nothing.
//!
//! The statement locks the row of each run in the queue in share mode, so that no other worker
//! takes the run over meanwhile. It leaves out the runs whose lease is not in force.

use std::sync::OnceLock;

use async_trait::async_trait;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::arrays::{ColumnArrays, Number, cached_text, decisions, definitions, events_text, fetch_all};
use super::batch_write::{BatchWrite, WriteKey};
use super::committer::AnyWrite;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::new_progress::{NewProgress, OPERATION};
use crate::rows::{LeaseKey, Row, Value};

/// Inserts the progress of a run. Returns whether the lease is in force.
pub(super) async fn progress_insert(store: &PostgresStore, progress: NewProgress) -> Result<bool, StoreError> {
    let permits = Some(&store.progress_writes);
    let (_, is_leased) = store.write(progress, AnyWrite::Progress, permits).await?;
    is_leased.map_err(store_error(OPERATION))
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
        let rows = batch.execute(connection).await?;
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
    /// Executes the statement. Returns a row for each lease in force.
    async fn execute(self, connection: &mut PgConnection) -> Result<Vec<PgRow>, sqlx::Error> {
        static TEXTS: [OnceLock<String>; 4] = [const { OnceLock::new() }; 4];
        let text = cached_text(&TEXTS, &[&self.entries, &self.events], || self.build_text());
        fetch_all(connection, text, [self.leases, self.entries, self.events]).await
    }

    fn build_text(&self) -> String {
        let mut parts = definitions(&[
            ("lease", &self.leases),
            ("entry", &self.entries),
            ("events", &self.events),
        ]);
        parts.push(LEASED.to_owned());
        if !self.entries.is_empty() {
            parts.push(format!(
                "new_entry as (
                    insert into run_journal (tenant, run_id, {columns})
                    select tenant, run_id, {values} from entry join done using (tenant, number)
                    on conflict (tenant, run_id, sequence) do nothing
                )",
                columns = self.entries.names_from("sequence", ""),
                values = self.entries.names_from("sequence", "entry."),
            ));
        }
        if !self.events.is_empty() {
            parts.push(events_text(&self.events));
        }
        format!("with {} select number from done", parts.join(", "))
    }
}

/// The leases in force, whose rows are locked in share mode.
const LEASED: &str = "done as materialized (
        select lease.* from lease cross join lateral (
            select from run_queue q
            where q.tenant = lease.tenant and q.run_id = lease.run_id and q.fence = lease.fence
            for share
        ) queued
    )";
