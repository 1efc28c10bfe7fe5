//! Rows of `environment_commands` and `environment_command_output`.

use uuid::Uuid;

use super::{RowName, StoredTime, row};
use crate::commands::{CommandKey, CommandProgress, OutputPiece, RenewedCommand, TakenCommand};
use crate::error::StoreError;
use values::ids::{CommandId, ExecutionId};

const TABLE: &str = "environment_commands";

row! {
    /// A command that a worker has just taken.
    #[derive(Debug)]
    pub(crate) struct TakenCommandRow {
        tenant: String,
        command_id: Uuid,
        execution_id: Uuid,
        request: String,
    }
}

row! {
    /// A command whose lease was just renewed.
    #[derive(Debug)]
    pub(crate) struct RenewedCommandRow {
        is_stopped: bool,
        is_awaited: bool,
    }
}

row! {
    /// The progress of a command.
    #[derive(Debug)]
    pub(crate) struct CommandProgressRow {
        worker: Option<String>,
        leased_until: Option<StoredTime>,
        outcome: Option<String>,
    }
}

row! {
    /// A piece of output.
    #[derive(Debug)]
    pub(crate) struct OutputPieceRow {
        position: i64,
        bytes: Vec<u8>,
    }
}

fn read_key(tenant: &str, command_id: Uuid) -> Result<CommandKey, StoreError> {
    let tenant = RowName::new(TABLE, &command_id).parse("tenant", tenant)?;
    let command_id = CommandId::from_uuid(command_id);
    Ok(CommandKey { tenant, command_id })
}

impl TryFrom<TakenCommandRow> for TakenCommand {
    type Error = StoreError;

    fn try_from(row: TakenCommandRow) -> Result<Self, StoreError> {
        Ok(Self {
            key: read_key(&row.tenant, row.command_id)?,
            execution_id: ExecutionId::from_uuid(row.execution_id),
            request: row.request,
        })
    }
}

impl RenewedCommandRow {
    /// Reads the columns that the worker needs.
    pub(crate) fn read(self) -> RenewedCommand {
        RenewedCommand {
            is_stopped: self.is_stopped,
            is_awaited: self.is_awaited,
        }
    }
}

impl CommandProgressRow {
    /// Reads the row of a command, without its output.
    pub(crate) fn read(self, key: &CommandKey) -> Result<CommandProgress, StoreError> {
        let name = RowName::new(TABLE, &key.command_id);
        let taken = match (self.worker, self.leased_until) {
            (Some(worker), Some(until)) => Some((name.parse("worker", &worker)?, until.0)),
            _ => None,
        };
        Ok(CommandProgress {
            taken,
            outcome: self.outcome,
            output: Vec::new(),
        })
    }
}

impl OutputPieceRow {
    /// Reads a piece.
    pub(crate) fn read(self) -> OutputPiece {
        OutputPiece {
            position: self.position.unsigned_abs(),
            bytes: self.bytes.into(),
        }
    }
}
