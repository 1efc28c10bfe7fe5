//! Runs the shared statements on SQLite: reads on any reader, writes through the committer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _};
use sqlx::{Sqlite, SqliteConnection};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

use super::SqliteStore;
use super::commit::{run_end_on_conn, session_insert_on_conn};
use super::contents::{insert_in_txn, renew_in_txn};
use super::progress::progress_in_txn;
use super::queue::{accept_in_txn, lease_in_txn};
use super::spend::take_in_txn;
use crate::commands::CommandWakeUp;
use crate::content_rules::ContentRules;
use crate::error::StoreError;
use crate::new_acceptance::{NewAcceptance, OPERATION};
use crate::new_commit::{NewCommit, NewSession};
use crate::new_end::NewEnd;
use crate::new_progress::{NewProgress, OPERATION as PERSIST};
use crate::queue::{LeaseChoice, LeaseTerms};
use crate::rows::{LeaseKey, LeasedRunRow, NewContentRow, RenewedContentRow};
use crate::sql::{
    Attempt, CommitOutcome, Connection, Decided, Ended, Engine, EngineRow, FIND_MISSING, LEASE, NewReservation, PUT,
    RESERVE, Refusal, RemovalAct, Statement, Tally, commit_write_alone, due_in_pair, first_threads, newest_of_tree,
    oldest_of_tree, record, segment_condition,
};
use tasks::fair_share::FairShare;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// The interval at which changes of commands by other processes are read.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The condition that two JSON values have the same type.
macro_rules! same_type {
    ($one:literal, $other:literal) => {
        concat!(
            "(",
            $one,
            ".type = ",
            $other,
            ".type or ",
            $one,
            ".type in ('integer', 'real') and ",
            $other,
            ".type in ('integer', 'real'))"
        )
    };
}

/// The condition that two JSON values, neither objects nor arrays, are equal. SQLite rounds an
/// integer of more than 63 bits to a fraction, so two of these are compared by their digits.
macro_rules! same_atom {
    ($one:literal, $other:literal) => {
        concat!(
            $one,
            ".atom is ",
            $other,
            ".atom and (typeof(",
            $one,
            ".atom) <> 'real' or ",
            $one,
            ".type <> 'integer' or ",
            $other,
            ".type <> 'integer' or ",
            $one,
            ".json -> ",
            $one,
            ".fullkey is ",
            $other,
            ".json -> ",
            $other,
            ".fullkey)"
        )
    };
}

#[async_trait]
impl Engine for SqliteStore {
    /// No rows are locked, since there is only one writer.
    const SKIP_LOCKED: &'static str = "";
    const SHARE: &'static str = "";
    const LOCK: &'static str = "";
    const UNUSED: &'static str = "";
    const TIME: &'static str = "select cast(round(unixepoch('subsec') * 1000) as integer) * 1000";
    const LISTED: &'static str = " in (select unhex(value) from json_each($2))";

    const TREE: &'static str = "with recursive tree (session_id, level, family) as (
            select $2, 0, 1
            union
            select k.session_id, t.level + 1, 0
            from tree t join sessions k on k.tenant = $1 and k.parent_session_id = t.session_id
            union
            select k.session_id, t.level + 1, 0
            from tree t join removed_sessions k on k.tenant = $1 and k.parent_session_id = t.session_id
            union
            select k.session_id, t.level + 1, t.family
            from tree t join sessions k on k.tenant = $1 and k.subagent_of = t.session_id
        )";

    /// A subquery has one column, so it returns the figures as one JSON array. A second read of the
    /// index for the threads takes less time than a temporary table of the sessions.
    const TREE_FIGURES: &'static str = concat!(
        ", packed (root_session_id, figures) as materialized (
            select tree.root_session_id, (
                select json_array(count(*), max(n.created_at), ",
        first_threads!(concat!("(", newest_of_tree!(), ") n")),
        ") from (",
        newest_of_tree!(),
        ") n)
            from tree
        ), figures as (
            select root_session_id, figures ->> 0 as session_count, figures ->> 1 as last_activity_at,
                figures ->> 2 as threads
            from packed
        )"
    );

    const OLDEST_OF_TREE: &'static str = concat!(" join sessions s on ", oldest_of_tree!());

    const AND_UNINDEXED: &'static str = " and +";

    const OLDEST_OF_PAIR: &'static str = concat!(
        "webhook_deliveries d where d.tenant = pair.tenant and d.delivery_id in (
            select delivery_id from webhook_deliveries where ",
        due_in_pair!(),
        ")"
    );

    fn waiting_reads(&self) -> &Arc<FairShare> {
        &self.waiting_reads
    }

    fn progress_writes(&self) -> &Semaphore {
        &self.progress_writes
    }

    fn content_rules(&self) -> &ContentRules {
        &self.contents
    }

    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let rows = statement.into_query::<Sqlite>().fetch(&self.readers);
        rows.map_ok(EngineRow::Sqlite).boxed()
    }

    async fn fetch_optional(&self, statement: Statement<'_>) -> Result<Option<EngineRow>, sqlx::Error> {
        let row = statement.into_query::<Sqlite>().fetch_optional(&self.readers).await?;
        Ok(row.map(EngineRow::Sqlite))
    }

    async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let operation = statement.operation();
        let query = statement.into_query::<Sqlite>();
        self.write(operation, move |connection| {
            let executing = query.execute(connection);
            executing.map_ok(|done| Ended::Committed(done.rows_affected())).boxed()
        })
        .await
    }

    async fn execute_returning(&self, statement: Statement<'_>) -> Result<Vec<EngineRow>, StoreError> {
        let operation = statement.operation();
        let query = statement.into_query::<Sqlite>();
        self.write(operation, move |connection| {
            let fetching = query.fetch_all(connection);
            let rows = fetching.map_ok(|rows| rows.into_iter().map(EngineRow::Sqlite).collect());
            rows.map_ok(Ended::Committed).boxed()
        })
        .await
    }

    async fn remove(&self, statements: Vec<Statement<'_>>, act: Option<RemovalAct>) -> Result<Vec<Tally>, StoreError> {
        let operation = statements.first().map_or("remove", Statement::operation);
        let queries: Vec<_> = statements.into_iter().map(Statement::into_query::<Sqlite>).collect();
        let removing = async move |connection: &mut SqliteConnection| {
            if let Some(removal) = &act {
                record(&mut Connection::Sqlite(connection), &removal.act).await?;
            }
            let mut tallies = Vec::with_capacity(queries.len());
            for query in queries {
                let rows = query.fetch_all(&mut *connection).await?;
                let rows: Vec<_> = rows.into_iter().map(EngineRow::Sqlite).collect();
                tallies.push(Tally::of(&rows)?);
            }
            let is_done = act.is_none_or(|act| act.is_done(&tallies));
            let ended = if is_done { Ended::Committed } else { Ended::RolledBack };
            Ok::<_, sqlx::Error>(ended(tallies))
        };
        self.write(operation, move |connection| removing(connection).boxed())
            .await
    }

    async fn transact<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
    {
        self.write(operation, move |connection| work(Connection::Sqlite(connection)))
            .await
    }

    async fn run_accept(&self, row: NewAcceptance) -> Result<Attempt, StoreError> {
        self.transact(OPERATION, move |connection| Box::pin(accept_in_txn(connection, row)))
            .await
    }

    async fn progress_insert(&self, progress: NewProgress) -> Result<bool, StoreError> {
        let inserting = self.transact(PERSIST, move |connection| {
            Box::pin(progress_in_txn(connection, progress))
        });
        inserting.await
    }

    async fn commit_write(&self, commit: NewCommit) -> Result<CommitOutcome, StoreError> {
        commit_write_alone(self, commit).await
    }

    async fn session_insert_on_conn(
        connection: &mut Connection<'_>,
        session: &NewSession,
        end: Option<&NewEnd>,
    ) -> Result<BranchPosition, Refusal> {
        session_insert_on_conn(connection, session, end).await
    }

    async fn run_end_on_conn(
        connection: &mut Connection<'_>,
        tenant: &TenantId,
        lease: &LeaseKey,
        end: &NewEnd,
    ) -> Result<(), sqlx::Error> {
        run_end_on_conn(connection, tenant, lease, end).await
    }

    async fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> Result<Vec<LeasedRunRow>, StoreError> {
        self.transact(LEASE, move |connection| {
            Box::pin(lease_in_txn(connection, terms, choice))
        })
        .await
    }

    async fn spend_take(&self, reservation: &NewReservation) -> Result<Decided, StoreError> {
        let reservation = reservation.clone();
        self.transact(RESERVE, move |connection| {
            Box::pin(take_in_txn(connection, reservation))
        })
        .await
    }

    async fn contents_insert(&self, tenant: &TenantId, rows: Vec<NewContentRow>) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        self.transact(PUT, move |connection| Box::pin(insert_in_txn(connection, tenant, rows)))
            .await
    }

    async fn contents_renew(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<RenewedContentRow>, StoreError> {
        let (tenant, hashes) = (tenant.clone(), hashes.to_vec());
        self.transact(FIND_MISSING, move |connection| {
            Box::pin(renew_in_txn(connection, tenant, hashes))
        })
        .await
    }

    fn wake_ups(&self) -> BoxStream<'static, ()> {
        self.wake_ups.stream()
    }

    fn send_command_wake_up(&self, wake_up: CommandWakeUp) {
        self.command_wake_ups.send(wake_up);
    }

    /// Other processes can't send wake-ups, so the stream has one at intervals. A read of the file
    /// takes less than a tenth of a millisecond.
    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp> {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let polls = stream::unfold(ticks, async |mut ticks| {
            ticks.tick().await;
            Some((CommandWakeUp::Missed, ticks))
        });
        stream::select(self.command_wake_ups.stream(), polls).boxed()
    }

    fn push_segments_join(select: &mut Statement<'_>) {
        // SQLite runs a cross join in the order in which it is written.
        select.push(concat!(
            " cross join history_segments h where s.rest = 0 and ",
            segment_condition!()
        ));
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        // Numbers are compared by value, as on PostgreSQL and for active runs. Two objects or
        // arrays are equal if they have the same number of parts, and equal parts at equal paths.
        select.push_bind(" and not exists (select 1 from json_each(", wanted);
        select.push(concat!(
            ") wanted where not exists (
                select 1 from json_each(metadata) had
                where had.key = wanted.key and ",
            same_type!("had", "wanted"),
            " and case
                    when wanted.atom is null and wanted.type <> 'null' then
                        (select count(*) from json_tree(had.value)) = (select count(*) from json_tree(wanted.value))
                        and not exists (
                            select 1 from json_tree(wanted.value) part where not exists (
                                select 1 from json_tree(had.value) own
                                where own.fullkey = part.fullkey and ",
            same_type!("own", "part"),
            " and ",
            same_atom!("own", "part"),
            "))
                    else ",
            same_atom!("had", "wanted"),
            "
                end))"
        ));
    }
}
