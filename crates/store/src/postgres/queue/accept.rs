//! Accepts runs on PostgreSQL. One statement inserts all rows of a run, all or nothing, for any
//! number of runs. The committer executes it for several runs at once. Three kinds of runs have a
//! transaction of their own, which executes the statement for one run (`admission.rs`): runs on a
//! thread, runs that answer open calls, and runs of a tenant whose waiting runs are limited.
//!
//! The statement locks the row of a run's base session in share mode. It leaves out a run whose
//! base was removed or whose idempotency key is taken. A run that follows a thread needs no base:
//! it continues the session to which the thread points when it begins.

use std::sync::OnceLock;

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use super::super::PostgresStore;
use super::super::arrays::{ColumnArrays, Number, cached_text, decisions, definitions, fetch_all};
use super::super::batch_write::{BatchWrite, WriteKey};
use super::super::committer::AnyWrite;
use super::super::timeouts::in_time;
use super::admission::{TENANT_LOCK, acceptance_turn, begins_thread, is_set, thread_statement};
use crate::driver_error::{is_deadlock, is_unique_violation, is_violation_of, store_error};
use crate::error::StoreError;
use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::queue::{Acceptance, IdempotencyKey};
use crate::rows::{Row, Value};
use crate::sql::{Attempt, Connection, Ended, Engine as _, admit_in_txn, answer_in_txn, ended, next_turn};

/// The unique index of the active runs of threads.
const ACTIVE_INDEX: &str = "run_queue_active";

/// Accepts a run.
pub(in crate::postgres) async fn run_accept(store: &PostgresStore, row: NewAcceptance) -> Result<Attempt, StoreError> {
    if row.thread().is_some() || row.max_waiting.is_some() || row.answer.is_some() {
        let waiting = async { Ok::<_, sqlx::Error>(acceptance_turn(store, &row).await) };
        let turn = in_time(waiting).await.map_err(store_error(OPERATION))?;
        return store
            .transact(OPERATION, move |connection| {
                Box::pin(async move {
                    let _turn = turn;
                    accept_in_txn(connection, row).await
                })
            })
            .await;
    }
    let (row, inserted) = Box::pin(store.write(row, AnyWrite::Accept, None)).await?;
    // The run may have been accepted although the response was lost.
    if row.is_free() && !matches!(inserted, Ok(Some(_))) {
        store.wake_ups.send();
    }
    let conflict = inserted.or_else(conflict_of).map_err(store_error(OPERATION))?;
    Ok(conflict.unwrap_or(Attempt::Accepted {
        is_leased: row.is_leased(),
        interrupted: None,
    }))
}

async fn accept_in_txn(mut connection: Connection<'_>, row: NewAcceptance) -> Result<Ended<Attempt>, sqlx::Error> {
    let run = match admit_in_txn(&mut connection, row, thread_statement, Some(TENANT_LOCK)).await? {
        Ok(run) => run,
        Err(conflict) => return Ok(Ended::RolledBack(conflict)),
    };
    let connection = connection.postgres()?;
    let mut conflict = run.row.execute(connection).await.or_else(conflict_of)?;
    if conflict.is_none() && begins_thread(&run.row) && is_set(connection, &run.row).await? {
        conflict = Some(Attempt::ThreadRaced);
    }
    if conflict.is_none() {
        conflict = answer_in_txn(&mut Connection::Postgres(connection), &run.row).await?;
    }
    Ok(ended(&run, conflict))
}

/// Returns the conflict that an error stands for.
fn conflict_of(error: sqlx::Error) -> Result<Option<Attempt>, sqlx::Error> {
    if is_violation_of(&error, ACTIVE_INDEX) || is_deadlock(&error) {
        Ok(Some(Attempt::ThreadRaced))
    } else if is_unique_violation(&error) {
        Ok(Some(Attempt::Exists))
    } else {
        Err(error)
    }
}

#[async_trait]
impl BatchWrite for NewAcceptance {
    /// The conflict, unless its rows are inserted.
    type Decision = Option<Attempt>;

    fn key(&self) -> Option<WriteKey> {
        let key = self.idempotency.as_ref()?;
        Some(WriteKey::Idempotency(self.tenant.clone(), key.key.clone()))
    }

    fn bytes(&self) -> usize {
        self.queue.request.len() + self.run.bytes()
    }

    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Option<Attempt>>, sqlx::Error> {
        let mut sorted: Vec<_> = writes.iter().zip(Number::all()).collect();
        sorted.sort_by_key(|(row, _)| (&row.tenant, row.run.row.base_session_id));
        let mut batch = Batch::default();
        for (row, number) in &sorted {
            batch.runs.push(&row.tenant, &[number, &row.run]);
            batch.queued.push(&row.tenant, &[number, &row.queue]);
            if let Some(key) = &row.idempotency {
                batch.keys.push(&row.tenant, &[number, key]);
            }
        }
        let rows = batch.execute(connection).await?;
        let refused: Vec<Option<bool>> = decisions(&rows, writes.len(), |row| row.try_get(1).map(Some))?;
        let conflicts = refused.into_iter().zip(writes).map(|(has_base, write)| {
            if has_base? {
                Some(Attempt::KeyTaken)
            } else {
                let base = write.needed_base()?;
                Some(Attempt::Refused(Acceptance::MissingBase(base)))
            }
        });
        Ok(conflicts.collect())
    }
}

impl Row for IdempotencyKey {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("key", (&self.key).into());
        column("digest", (&self.digest).into());
        column("claimed_at", self.claimed_at.into());
        column("expires_at", self.expires_at.into());
    }
}

/// The rows of a batch, with the numbers of their runs.
#[derive(Debug, Default)]
struct Batch<'v> {
    runs: ColumnArrays<'v>,
    queued: ColumnArrays<'v>,
    keys: ColumnArrays<'v>,
}

impl Batch<'_> {
    /// Executes the statement. Returns a row for each run that is refused.
    async fn execute(self, connection: &mut PgConnection) -> Result<Vec<PgRow>, sqlx::Error> {
        static TEXTS: [OnceLock<String>; 2] = [const { OnceLock::new() }; 2];
        let text = cached_text(&TEXTS, &[&self.keys], || self.build_text());
        fetch_all(connection, text, [self.runs, self.queued, self.keys]).await
    }

    fn build_text(&self) -> String {
        let mut parts = definitions(&[("run", &self.runs), ("queued", &self.queued), ("key", &self.keys)]);
        parts.push(BASED.to_owned());
        parts.push(if self.keys.is_empty() {
            "accepted as (select number from based)".to_owned()
        } else {
            CLAIMS.to_owned()
        });
        parts.push(format!(
            concat!(
                "made as (
                    insert into threads (tenant, name, session_id, version, created_at, updated_at)
                    select tenant, thread, null, 0, created_at, created_at from run join accepted using (number)
                    where thread is not null and not exists (
                        select from threads t where t.tenant = run.tenant and t.name = run.thread)
                    on conflict (tenant, name) do nothing
                ), new_run as (
                    insert into runs (tenant, {run})
                    select tenant, {run} from run join accepted using (number)
                ), new_queued as (
                    insert into run_queue (tenant, {queued}, turn)
                    select tenant, {queued},
                        row_number() over (partition by tenant, level order by number) - 1 + ",
                next_turn!("queued.tenant", "queued.level"),
                "
                    from queued join accepted using (number)
                )"
            ),
            run = self.runs.names_from("run_id", ""),
            queued = self.queued.names_from("run_id", ""),
        ));
        format!(
            "with {} select number, number in (select number from based) from run
            where number not in (select number from accepted)",
            parts.join(", ")
        )
    }
}

/// The runs whose base exists, or that need none.
const BASED: &str = "based as materialized (
        select number from run join queued using (number) where follows_thread or base_session_id is null
        union all
        select number from run join queued using (number) cross join lateral (
            select from sessions s where s.tenant = run.tenant and s.session_id = run.base_session_id
            for share
        ) base
        where not follows_thread and base_session_id is not null
    )";

/// Claims the keys. A key is free if it expired before the first claim of the batch.
const CLAIMS: &str = "claimed as (
        insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        select run.tenant, key.key, run.run_id, key.digest, key.expires_at
        from key join based using (number) join run using (number)
        order by run.tenant, key.key
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= (select min(claimed_at) from key)
        returning tenant, key
    ), accepted as (
        select number from based left join key using (number)
        where key.key is null or (key.tenant, key.key) in (select tenant, key from claimed)
    )";
