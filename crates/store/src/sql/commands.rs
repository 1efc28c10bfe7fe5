//! The queue of commands for workers.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::connection::Ended;
use super::engine::Engine;
use super::statement::Statement;
use crate::commands::{
    CommandKey, CommandLease, CommandProgress, CommandStore, CommandTerms, CommandWakeUp, MAX_OUTPUT_PIECES,
    NewCommand, OutputPiece, RenewedCommand, TakenCommand,
};
use crate::error::StoreError;
use crate::rows::{CommandProgressRow, OutputPieceRow, RenewedCommandRow, TakenCommandRow, values};
use values::clock::Timestamp;

const END: &str = "end command";

/// The condition that the lease `$1`, `$2`, `$3` is in force at `$4`.
macro_rules! is_leased {
    () => {
        "tenant = $1 and command_id = $2 and worker = $3 and outcome is null and leased_until > $4"
    };
}

const INSERT: &str = "insert into environment_commands
        (tenant, command_id, execution_id, preferred_worker, inserted_at, awaited_until, request, is_stopped)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (tenant, command_id) do nothing";

/// Ends with the locks of the engine, then [`TAKE`].
const NEXT: &str = "with next as materialized (
        select c.tenant, c.command_id from environment_commands c
        where c.worker is null and not c.is_stopped and c.awaited_until > $1
            and (c.preferred_worker is null or c.preferred_worker = $3 or c.inserted_at < $4)
        order by (
            select count(*) from environment_commands b
            where b.tenant = c.tenant and b.worker is not null and b.outcome is null
        ), c.command_id
        limit 1";
const TAKE: &str = ")
    update environment_commands set worker = $3, leased_until = $2
    where (tenant, command_id) in (select tenant, command_id from next)
    returning tenant, command_id, execution_id, request";

const RENEW: &str = concat!(
    "update environment_commands set leased_until = $5 where ",
    is_leased!(),
    " returning is_stopped, awaited_until > $4 as is_awaited"
);

const ADD_OUTPUT: &str = concat!(
    "insert into environment_command_output (tenant, command_id, position, bytes)
    select tenant, command_id, $5, $6 from environment_commands where ",
    is_leased!(),
    " on conflict (tenant, command_id, position) do nothing"
);

const SET_OUTCOME: &str = concat!("update environment_commands set outcome = $5 where ", is_leased!());

#[async_trait]
impl<E: Engine> CommandStore for E {
    async fn command_insert(&self, command: &NewCommand) -> Result<(), StoreError> {
        let preferred = command.preferred_worker.map(|worker| worker.to_string());
        let values = values![
            &command.key.tenant,
            command.key.command_id,
            command.execution_id,
            &preferred,
            command.now,
            command.awaited_until,
            &command.request,
            false
        ];
        Statement::with("add command", INSERT, values).execute(self).await?;
        self.send_command_wake_up(CommandWakeUp::Waiting);
        Ok(())
    }

    async fn command_take(&self, terms: &CommandTerms) -> Result<Option<TakenCommand>, StoreError> {
        const OPERATION: &str = "take command";
        // Most looks at the queue find nothing, and a read costs less than a write.
        let waiting = "select cast(1 as bigint) from environment_commands where worker is null limit 1";
        let waiting: Option<(i64,)> = Statement::new(OPERATION, waiting).fetch_optional(self).await?;
        if waiting.is_none() {
            return Ok(None);
        }
        let worker = terms.worker.to_string();
        let values = values![terms.now, terms.until, &worker, terms.preferred_before];
        let mut take = Statement::with(OPERATION, NEXT, values);
        take.push(E::SKIP_LOCKED);
        take.push(TAKE);
        let taken: Vec<TakenCommandRow> = take.execute_returning(self).await?;
        taken.into_iter().next().map(TakenCommand::try_from).transpose()
    }

    async fn command_renew(
        &self,
        lease: &CommandLease,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<RenewedCommand>, StoreError> {
        let worker = lease.worker.to_string();
        let values = values![&lease.key.tenant, lease.key.command_id, &worker, now, until];
        let renew = Statement::with("renew lease of command", RENEW, values);
        let rows: Vec<RenewedCommandRow> = renew.execute_returning(self).await?;
        Ok(rows.into_iter().next().map(RenewedCommandRow::read))
    }

    async fn command_add_output(
        &self,
        lease: &CommandLease,
        piece: &OutputPiece,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let worker = lease.worker.to_string();
        let values = values![
            &lease.key.tenant,
            lease.key.command_id,
            &worker,
            now,
            piece.position,
            &*piece.bytes
        ];
        let add = Statement::with("add output of command", ADD_OUTPUT, values);
        let is_added = add.execute(self).await? > 0;
        if is_added {
            self.send_command_wake_up(CommandWakeUp::Progressed(lease.key.command_id));
        }
        Ok(is_added)
    }

    async fn command_end(
        &self,
        lease: &CommandLease,
        last: Option<&OutputPiece>,
        outcome: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (key, worker, outcome) = (lease.key.clone(), lease.worker.to_string(), outcome.to_owned());
        let last = last.cloned();
        let ending = self.transact(END, move |mut connection| {
            Box::pin(async move {
                let lease = values![&key.tenant, key.command_id, &worker, now];
                if let Some(piece) = &last {
                    let add = Statement::with(END, ADD_OUTPUT, lease.clone());
                    connection.execute(add.bind(piece.position).bind(&*piece.bytes)).await?;
                }
                let set = Statement::with(END, SET_OUTCOME, lease).bind(&outcome);
                let is_set = connection.execute(set).await? > 0;
                Ok(if is_set {
                    Ended::Committed(true)
                } else {
                    Ended::RolledBack(false)
                })
            })
        });
        let is_set = ending.await?;
        if is_set {
            self.send_command_wake_up(CommandWakeUp::Progressed(lease.key.command_id));
        }
        Ok(is_set)
    }

    async fn command_await(&self, key: &CommandKey, until: Timestamp) -> Result<bool, StoreError> {
        let statement = "update environment_commands set awaited_until = $3 where tenant = $1 and command_id = $2";
        let update = Statement::with("await command", statement, values![&key.tenant, key.command_id, until]);
        Ok(update.execute(self).await? > 0)
    }

    async fn command_progress(&self, key: &CommandKey, from: u64) -> Result<Option<CommandProgress>, StoreError> {
        const OPERATION: &str = "read command";
        let statement = "select worker, leased_until, outcome from environment_commands
            where tenant = $1 and command_id = $2";
        let select = Statement::with(OPERATION, statement, values![&key.tenant, key.command_id]);
        let row: Option<CommandProgressRow> = select.fetch_optional(self).await?;
        let Some(row) = row else { return Ok(None) };
        let mut progress = row.read(key)?;
        // The output comes second: an outcome is stored together with the last output.
        let statement = "select position, bytes from environment_command_output
            where tenant = $1 and command_id = $2 and position >= $3
            order by position
            limit $4";
        let values = values![&key.tenant, key.command_id, from, MAX_OUTPUT_PIECES];
        let pieces: Vec<OutputPieceRow> = Statement::with(OPERATION, statement, values).fetch_all(self).await?;
        progress.output = pieces.into_iter().map(OutputPieceRow::read).collect();
        Ok(Some(progress))
    }

    async fn command_withdraw(&self, key: &CommandKey) -> Result<bool, StoreError> {
        let statement = "delete from environment_commands
            where tenant = $1 and command_id = $2 and worker is null";
        let delete = Statement::with("withdraw command", statement, values![&key.tenant, key.command_id]);
        Ok(delete.execute(self).await? > 0)
    }

    async fn command_stop(&self, key: &CommandKey) -> Result<(), StoreError> {
        let statement = "update environment_commands set is_stopped = $3 where tenant = $1 and command_id = $2";
        let stop = Statement::with("stop command", statement, values![&key.tenant, key.command_id, true]);
        stop.execute(self).await?;
        self.send_command_wake_up(CommandWakeUp::Stopped(key.command_id));
        Ok(())
    }

    async fn command_remove(&self, key: &CommandKey) -> Result<(), StoreError> {
        let statement = "delete from environment_commands where tenant = $1 and command_id = $2";
        let delete = Statement::with("remove command", statement, values![&key.tenant, key.command_id]);
        delete.execute(self).await.map(drop)
    }

    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp> {
        Engine::command_wake_ups(self)
    }
}
