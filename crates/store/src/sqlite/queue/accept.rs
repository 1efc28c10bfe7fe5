//! Accepts runs on SQLite. Inserts their rows one after the other, in one transaction.

use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::queue::Acceptance;
use crate::rows::values;
use crate::sql::{
    Attempt, Connection, Ended, Statement, admit_in_txn, answer_in_txn, ended, key_claim_statement, next_turn,
    run_insert_statement,
};

/// Accepts a run.
pub(in crate::sqlite) async fn accept_in_txn(
    mut connection: Connection<'_>,
    row: NewAcceptance,
) -> Result<Ended<Attempt>, sqlx::Error> {
    let run = match admit_in_txn(&mut connection, row, thread_statement, None).await? {
        Ok(run) => run,
        Err(conflict) => return Ok(Ended::RolledBack(conflict)),
    };
    let mut conflict = rows_insert(&mut connection, &run.row).await?;
    if conflict.is_none() {
        conflict = answer_in_txn(&mut connection, &run.row).await?;
    }
    Ok(ended(&run, conflict))
}

/// Reads the state of the thread.
fn thread_statement(row: &NewAcceptance) -> Statement<'_> {
    let statement = "select
            (select run_id from run_queue
                where tenant = $1 and thread = $2 and moves_thread and not is_held) as active,
            (select session_id from threads where tenant = $1 and name = $2) as session_id,
            exists (
                select 1 from idempotency_keys where tenant = $1 and key = $3 and expires_at > $4) as is_key_taken";
    Statement::with(OPERATION, statement, row.thread_values())
}

/// Inserts the rows of a run. Returns the conflict, if there is one.
async fn rows_insert(connection: &mut Connection<'_>, row: &NewAcceptance) -> Result<Option<Attempt>, sqlx::Error> {
    if let Some(base) = row.needed_base() {
        let statement = "select 1 from sessions where tenant = $1 and session_id = $2";
        let find = Statement::with(OPERATION, statement, values![&row.tenant, base]);
        let found: Option<(i32,)> = connection.fetch_optional(find).await?;
        if found.is_none() {
            return Ok(Some(Attempt::Refused(Acceptance::MissingBase(base))));
        }
    }
    if let Some(key) = &row.idempotency {
        let claim = key_claim_statement(&row.tenant, key, row.queue.run_id);
        if connection.execute(claim).await? == 0 {
            return Ok(Some(Attempt::KeyTaken));
        }
    }
    if let Some(thread) = row.thread() {
        let statement = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
            values ($1, $2, null, 0, $3, $3)
            on conflict (tenant, name) do nothing";
        let values = values![&row.tenant, thread, row.queue.enqueued_at];
        connection
            .execute(Statement::with(OPERATION, statement, values))
            .await?;
    }
    let run = run_insert_statement(OPERATION, &row.tenant, &row.run);
    if connection.execute(run).await? == 0 {
        return Ok(Some(Attempt::Exists));
    }
    let begin = "insert into run_queue (tenant, turn, ";
    let mut queued = Statement::with(OPERATION, begin, values![&row.tenant, row.queue.level]);
    queued.push_columns(&row.queue);
    queued.push(concat!(") values ($1, ", next_turn!("$1", "$2"), ", "));
    queued.push_values(&row.queue);
    queued.push(")");
    connection.execute(queued).await?;
    Ok(None)
}
