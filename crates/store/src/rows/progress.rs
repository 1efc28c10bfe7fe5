//! Rows of `run_journal`, `run_events` and `run_messages`.

use std::sync::Arc;

use uuid::Uuid;

use super::{PayloadRow, RowName, row};
use crate::codec::{decode_events, decode_journal_entry, decode_steering};
use crate::error::StoreError;
use crate::queue::{JournalRecord, SteeringRecord};
use agent::record::{RunEvent, SteeringMessage, SteeringStatus};

row! {
    /// An entry of a journal.
    #[derive(Debug)]
    pub(crate) struct JournalRow {
        run_id: Uuid,
        sequence: i64,
        scope: String,
        tree: Option<Vec<u8>>,
        ;
        payload: PayloadRow<Vec<u8>>,
    }
}

impl JournalRow {
    /// Returns the bytes of its entry, uncompressed.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload.stored().length()
    }
}

impl TryFrom<JournalRow> for JournalRecord {
    type Error = StoreError;

    fn try_from(row: JournalRow) -> Result<Self, StoreError> {
        let name = RowName::new("run_journal", &format_args!("{}/{}", row.run_id, row.sequence));
        Ok(Self {
            sequence: name.count("sequence", row.sequence)?,
            entry: decode_journal_entry(row.payload.stored()).map_err(|error| name.undecodable("payload", error))?,
            tree: row.tree.map(|tree| name.hash("tree", &tree)).transpose()?,
            scope: row.scope,
        })
    }
}

row! {
    /// Consecutive events.
    #[derive(Debug)]
    pub(crate) struct EventsRow {
        run_id: Uuid,
        last_sequence: i64,
        ;
        payload: PayloadRow<Vec<u8>>,
    }
}

impl EventsRow {
    /// Returns the number of its last event.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.last_sequence.unsigned_abs()
    }

    /// Returns the bytes of its events, uncompressed.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload.stored().length()
    }
}

impl TryFrom<EventsRow> for Vec<Arc<RunEvent>> {
    type Error = StoreError;

    fn try_from(row: EventsRow) -> Result<Self, StoreError> {
        decode_events(row.payload.stored())
            .map_err(|error| RowName::new("run_events", &row.run_id).undecodable("payload", error))
    }
}

row! {
    /// A message to an active run.
    #[derive(Debug)]
    pub(crate) struct SteeringRow {
        message_key: String,
        status: String,
        ;
        payload: PayloadRow<Vec<u8>>,
    }
}

impl SteeringRow {
    /// Returns its status.
    pub(crate) fn status(&self) -> Result<SteeringStatus, StoreError> {
        self.name().named("status", &self.status)
    }

    fn name(&self) -> RowName {
        RowName::new("run_messages", &self.message_key)
    }
}

impl TryFrom<SteeringRow> for SteeringRecord {
    type Error = StoreError;

    fn try_from(row: SteeringRow) -> Result<Self, StoreError> {
        let message =
            decode_steering(row.payload.stored()).map_err(|error| row.name().undecodable("payload", error))?;
        Ok(Self {
            status: row.status()?,
            message: SteeringMessage {
                key: row.message_key,
                message,
            },
        })
    }
}
