//! The encoded progress of a run: entries of its journal, and events. Contains no SQL.

use std::sync::Arc;

use super::codec::{EncodeError, Payload, encode_journal_entry};
use super::error::StoreError;
use super::new_end::NewEvents;
use super::queue::{JournalRecord, Lease};
use super::rows::{LeaseKey, Row, Value, stored_count};
use agent::journal::JournalEntry;
use agent::record::RunEvent;
use tasks::off_thread::by_size_of;
use values::json::weight;
use values::session::Hash;
use values::tenant::TenantId;

/// The operation's name in errors.
pub(crate) const OPERATION: &str = "persist progress";

/// The values of the rows that one append writes.
#[derive(Debug)]
pub(crate) struct NewProgress {
    pub(crate) tenant: TenantId,
    pub(crate) lease: LeaseKey,
    pub(crate) entries: Vec<NewEntry>,
    pub(crate) events: Option<NewEvents>,
}

/// The values of a row of `run_journal`.
#[derive(Debug)]
pub(crate) struct NewEntry {
    sequence: i64,
    scope: String,
    tree: Option<Hash>,
    payload: Payload,
}

impl NewProgress {
    /// Encodes entries and events, on another thread if they are large.
    pub(crate) async fn make(
        lease: &Lease,
        entries: &[JournalRecord],
        events: &[Arc<RunEvent>],
    ) -> Result<Self, StoreError> {
        let tenant = &lease.tenant;
        let bytes: usize = entries.iter().map(|record| entry_weight(&record.entry)).sum();
        let entries = by_size_of(tenant, bytes as u64, entries, encode_entries).await;
        let events = NewEvents::make(tenant, events).await;
        Ok(Self {
            tenant: tenant.clone(),
            lease: lease.into(),
            entries: entries.map_err(StoreError::failed(OPERATION))?,
            events: events.map_err(StoreError::failed(OPERATION))?,
        })
    }

    /// Returns about how many bytes it sends to the database.
    pub(crate) fn bytes(&self) -> usize {
        let events = self.events.iter().map(|events| &events.payload);
        let payloads = self.entries.iter().map(|entry| &entry.payload).chain(events);
        payloads.map(|payload| payload.bytes.len()).sum()
    }
}

/// Estimates the memory of the data that an entry encodes, in bytes.
fn entry_weight(entry: &JournalEntry) -> usize {
    match entry {
        JournalEntry::SubagentBegun { environment, .. } => weight(environment),
        JournalEntry::EnvironmentChanged { state, .. } => weight(state),
        JournalEntry::CallBegun { .. } => 0,
        JournalEntry::Reached(addition) => weight(addition.state()),
        JournalEntry::CallsRequested { step, addition, .. } => weight(step) + weight(addition.state()),
        JournalEntry::CallDecided { tool_use, addition, .. } => weight(tool_use) + weight(addition.state()),
        JournalEntry::CallEnded {
            execution, addition, ..
        } => weight(execution) + weight(addition.state()),
    }
}

fn encode_entries(entries: &[JournalRecord]) -> Result<Vec<NewEntry>, EncodeError> {
    let encode = |record: &JournalRecord| {
        Ok(NewEntry {
            sequence: stored_count(record.sequence),
            scope: record.scope.clone(),
            tree: record.tree,
            payload: encode_journal_entry(&record.entry)?,
        })
    };
    entries.iter().map(encode).collect()
}

impl Row for NewEntry {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("sequence", self.sequence.into());
        column("scope", (&self.scope).into());
        column("tree", (&self.tree).into());
        self.payload.visit(column);
    }
}
