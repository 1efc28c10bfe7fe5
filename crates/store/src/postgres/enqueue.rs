//! Inserts runs into the queue with one statement: any number of them, each all or nothing.
//!
//! The statement locks the row of a run's base session in share mode. It leaves out a run whose
//! base was removed or whose idempotency key is taken. A run on a thread needs no base: it
//! continues the session to which the thread points when it begins.

use std::sync::OnceLock;

use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};

use super::arrays::{ColumnArrays, Number, decisions};
use super::batch_write::{BatchWrite, WriteKey};
use crate::new_queued_run::NewQueueRow;
use crate::queue::IdempotencyKey;
use crate::rows::{Row, Value};
use crate::sql::next_turn;

/// What the statement decides about a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Inserted {
    #[default]
    Accepted,
    /// Its base session does not exist.
    MissingBase,
    /// An earlier request has its key.
    KeyTaken,
}

#[async_trait]
impl BatchWrite for NewQueueRow {
    type Decision = Inserted;

    fn key(&self) -> Option<WriteKey> {
        let key = self.idempotency.as_ref()?;
        Some(WriteKey::Idempotency(self.tenant.clone(), key.key.clone()))
    }

    fn bytes(&self) -> usize {
        self.queue.request.len() + self.run.bytes()
    }

    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Inserted>, sqlx::Error> {
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
        let query = sqlx::query(batch.statement());
        let query = batch.runs.bind_to(query);
        let query = batch.queued.bind_to(query);
        let query = batch.keys.bind_to(query);
        let rows = query.fetch_all(connection).await?;
        decisions(&rows, writes.len(), |row| {
            let has_base = row.try_get(1)?;
            Ok(if has_base {
                Inserted::KeyTaken
            } else {
                Inserted::MissingBase
            })
        })
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
    /// Returns the text of the statement. It depends only on whether there are keys.
    fn statement(&self) -> &'static str {
        static TEXTS: [OnceLock<String>; 2] = [const { OnceLock::new() }; 2];
        TEXTS[usize::from(!self.keys.is_empty())].get_or_init(|| self.build_statement())
    }

    fn build_statement(&self) -> String {
        let claims = if self.keys.is_empty() {
            "accepted as (select number from based), ".to_owned()
        } else {
            self.claims(1 + self.runs.width() + self.queued.width())
        };
        format!(
            concat!(
                "with run as materialized (
                    select * from unnest({run_placeholders}) as run ({run_columns})
                ), queued as materialized (
                    select * from unnest({queue_placeholders}) as queued ({queue_columns})
                ), based as materialized (
                    select number from run where thread is not null or base_session_id is null
                    union all
                    select number from run cross join lateral (
                        select from sessions s where s.tenant = run.tenant and s.session_id = run.base_session_id
                        for share
                    ) base
                    where thread is null and base_session_id is not null
                ), {claims}made as (
                    insert into threads (tenant, name, session_id, version, created_at, updated_at)
                    select tenant, thread, null, 0, created_at, created_at from run join accepted using (number)
                    where thread is not null and not exists (
                        select from threads t where t.tenant = run.tenant and t.name = run.thread)
                    on conflict (tenant, name) do nothing
                ), new_run as (
                    insert into runs (tenant, {run_insert})
                    select tenant, {run_insert} from run join accepted using (number)
                ), new_queued as (
                    insert into run_queue (tenant, {queue_insert}, turn)
                    select tenant, {queue_insert},
                        row_number() over (partition by tenant, level order by number) - 1 + ",
                next_turn!("queued.tenant", "queued.level"),
                "
                    from queued join accepted using (number)
                )
                select number, number in (select number from based) from run
                where number not in (select number from accepted)"
            ),
            claims = claims,
            run_placeholders = self.runs.placeholders(1),
            run_columns = self.runs.names(),
            run_insert = self.runs.names_from("run_id", ""),
            queue_placeholders = self.queued.placeholders(1 + self.runs.width()),
            queue_columns = self.queued.names(),
            queue_insert = self.queued.names_from("run_id", ""),
        )
    }

    /// Claims the keys. A key is free if it expired before the first claim of the batch.
    fn claims(&self, first: usize) -> String {
        format!(
            "key as materialized (
                select * from unnest({placeholders}) as key ({columns})
            ), claimed as (
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
            ), ",
            placeholders = self.keys.placeholders(first),
            columns = self.keys.names(),
        )
    }
}
