//! Inserts the rows of an accepted run. PostgreSQL inserts all of them in one statement, SQLite one
//! after the other.
//!
//! *The order of the queue* is in its rows. An accepted run gets a *turn*: the one after the last
//! of its tenant's waiting runs, and no earlier than the first waiting turn of all. Leasing goes by
//! turn and id. So tenants alternate, and no tenant catches up on turns from before its first run.
//!
//! *Priorities.* A turn belongs to the tenant. The lease goes to the tenant's run of the highest
//! priority, and the two rows swap turns. So a priority counts within a tenant and gains it no
//! turn. If the operator lets priorities count among all tenants (`queue.priority`), the priority
//! is also the run's *level*. The rules above then hold within each level. Each operation takes a
//! few steps down an index.

use sqlx::{PgConnection, Row as _};

use super::enqueue::Attempt;
use super::idempotency::key_claim_statement;
use crate::record::ThreadName;
use crate::store::driver_error::is_unique_violation;
use crate::store::new_queued_run::{NewQueueRow, OPERATION};
use crate::store::rows::StoredTime;
use crate::store::sql::connection::Connection;
use crate::store::sql::runs::run_insert_statement;
use crate::store::sql::statement::Statement;

/// The turn of a run: after those of its tenant that wait, and no earlier than the first that waits, so that whoever comes late goes on
/// from where the others are.
///
/// The first and the last are found by their order: for `min` and `max`, a planner that takes the queue for short reads the whole of an
/// index.
macro_rules! next_turn {
    ($tenant:literal, $level:literal) => {
        concat!(
            "(select max(place.turn) from (
                select * from (
                    select turn + 1 as turn from run_queue
                    where tenant = ",
            $tenant,
            " and level = ",
            $level,
            " and leased_until is null
                    order by run_queue.turn desc
                    limit 1
                ) last
                union all
                select coalesce((
                    select turn from run_queue
                    where level = ",
            $level,
            " and leased_until is null and (not is_held or control = 'cancel')
                    order by turn
                    limit 1
                ), 1)
            ) place)"
        )
    };
}

/// Shares the base with those who remove it, and inserts nothing where one has taken it, or where the key is taken. A run on a thread continues what
/// that points to when it begins.
const ALL: &str = concat!(
    "with base as (
        select 1 from sessions where tenant = $1 and session_id = $4 for share
    ), based as (
        select 1 where $35 is not null or $4 is null or exists (select from base)
    ), claimed as (
        insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        select $1, $47, $2, $48, $49 from based where $47 is not null
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= $50
        returning 1
    ), accepted as (
        select 1 from based where $47 is null or exists (select from claimed)
    ), made as (
        insert into threads (tenant, name, session_id, version, created_at, updated_at)
        select $1, $35, null, 0, $39, $39 from accepted where $35 is not null
        on conflict (tenant, name) do nothing
    ), run as (
        insert into runs (
            tenant, run_id, session_id, base_session_id, agent, agent_version, model, mode, status, stop_reason,
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, total_tokens, cost,
            step_count, error, metadata, created_at, started_at, completed_at, schema_version, output_encoding,
            steps_encoding, output, steps, event_count, attempts, durability, thread, cost_known_part, answered_by)
        select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
            $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34
        from accepted
    ), queued as (
        insert into run_queue (
            tenant, run_id, thread, priority, is_held, moves_thread, enqueued_at, fence, attempts, leased_until, owner,
            schema_version, encoding, request, level, turn)
        select $1, $2, $35, $36, $37, $38, $39, $40, $40, $41, $42, $43, $44, $45, $46, ",
    next_turn!("$1", "$46"),
    " from accepted
    )
    select exists (select from based) as has_base, exists (select from accepted) as is_accepted"
);

/// Inserts the rows; returns what stands in the way, if anything.
pub(super) async fn insert(connection: &mut Connection<'_>, row: &NewQueueRow) -> Result<Option<Attempt>, sqlx::Error> {
    match connection {
        Connection::Postgres(connection) => rows_insert(connection, row).await,
        Connection::Sqlite(_) => insert_one_by_one(connection, row).await,
    }
}

/// Inserts the rows with one statement, all or nothing; returns what stands in the way, if anything.
pub(crate) async fn rows_insert(
    connection: &mut PgConnection,
    row: &NewQueueRow,
) -> Result<Option<Attempt>, sqlx::Error> {
    let owner = row.owner();
    let key = row.idempotency.as_ref();
    let insert = Statement::new(OPERATION, ALL)
        .bind(row.tenant.as_str())
        .bind_run(Some(&row.run))
        .bind_queue_row(row, owner.as_deref())
        .bind(key.map(|key| key.key.as_str()))
        .bind(key.map(|key| key.digest.as_bytes().as_slice()))
        .bind(key.map(|key| StoredTime(key.expires_at)))
        .bind(key.map(|key| StoredTime(key.claimed_at)));
    match insert.into_query().fetch_one(connection).await {
        Ok(answer) => {
            let (has_base, is_accepted): (bool, bool) = (answer.try_get("has_base")?, answer.try_get("is_accepted")?);
            Ok(match row.needed_base() {
                Some(base) if !has_base => Some(Attempt::MissingBase(base)),
                _ => (!is_accepted).then_some(Attempt::KeyTaken),
            })
        }
        Err(error) if is_unique_violation(&error) => Ok(Some(Attempt::Exists)),
        Err(error) => Err(error),
    }
}

async fn insert_one_by_one(connection: &mut Connection<'_>, row: &NewQueueRow) -> Result<Option<Attempt>, sqlx::Error> {
    if let Some(base) = row.needed_base() {
        let statement = "select 1 from sessions where tenant = $1 and session_id = $2";
        let find = Statement::new(OPERATION, statement)
            .bind(row.tenant.as_str())
            .bind(base.as_uuid());
        let found: Option<(i32,)> = connection.fetch_optional(find).await?;
        if found.is_none() {
            return Ok(Some(Attempt::MissingBase(base)));
        }
    }
    if let Some(key) = &row.idempotency {
        let claim = key_claim_statement(&row.tenant, key, row.run.run_id);
        if connection.execute(claim).await? == 0 {
            return Ok(Some(Attempt::KeyTaken));
        }
    }
    if let Some(thread) = &row.thread {
        let statement = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
            values ($1, $2, null, 0, $3, $3)
            on conflict (tenant, name) do nothing";
        let make = Statement::new(OPERATION, statement)
            .bind(row.tenant.as_str())
            .bind(thread.as_str())
            .bind(StoredTime(row.accepted_at));
        connection.execute(make).await?;
    }
    let run = run_insert_statement(OPERATION, &row.tenant, &row.run);
    if connection.execute(run).await? == 0 {
        return Ok(Some(Attempt::Exists));
    }
    let statement = concat!(
        "insert into run_queue (
            tenant, run_id, thread, priority, is_held, moves_thread, enqueued_at, fence, attempts, leased_until, owner,
            schema_version, encoding, request, level, turn)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, $14, ",
        next_turn!("$1", "$14"),
        ")"
    );
    let owner = row.owner();
    let queued = Statement::new(OPERATION, statement)
        .bind(row.tenant.as_str())
        .bind(row.run.run_id)
        .bind_queue_row(row, owner.as_deref());
    connection.execute(queued).await?;
    Ok(None)
}

impl<'v> Statement<'v> {
    /// Binds the values of a row of the queue from its thread to its level.
    fn bind_queue_row(self, row: &'v NewQueueRow, owner: Option<&'v str>) -> Self {
        self.bind(row.thread.as_ref().map(ThreadName::as_str))
            .bind(row.priority)
            .bind(row.is_held)
            .bind(row.moves_thread())
            .bind(StoredTime(row.accepted_at))
            .bind(row.fence())
            .bind(row.leased_until())
            .bind(owner)
            .bind_payload(Some(&row.request))
            .bind(row.level)
    }
}
