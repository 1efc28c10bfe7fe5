//! An engine whose operations are timed for an observer. Without one, a store has no such layer.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream};
use tokio::sync::Semaphore;

use super::attempt::Attempt;
use super::connection::{Connection, Ended};
use super::contents::{FIND_MISSING, PUT};
use super::engine::Engine;
use super::engine_row::{EngineRow, Tally};
use super::queue::LEASE;
use super::refusal::{CommitOutcome, Refusal};
use super::removal_act::RemovalAct;
use super::reservation::{Decided, NewReservation, RESERVE};
use super::statement::Statement;
use crate::commands::CommandWakeUp;
use crate::content_rules::ContentRules;
use crate::error::StoreError;
use crate::new_acceptance::{NewAcceptance, OPERATION as ACCEPT};
use crate::new_commit::{NewCommit, NewSession, OPERATION as COMMIT};
use crate::new_end::NewEnd;
use crate::new_progress::{NewProgress, OPERATION as PERSIST};
use crate::observer::{Connections, Outcome, StoreObserver};
use crate::queue::{LeaseChoice, LeaseTerms};
use crate::rows::{LeaseKey, LeasedRunRow, NewContentRow, RenewedContentRow};
use crate::traits::StoreHealth;
use tasks::fair_share::FairShare;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// An engine with an observer.
#[derive(Debug)]
pub(crate) struct Observed<E> {
    engine: E,
    observer: Arc<dyn StoreObserver>,
}

/// An operation in progress. One that is dropped before its end was abandoned.
struct Timed<'a> {
    observer: &'a dyn StoreObserver,
    operation: &'static str,
    began: Instant,
    outcome: Outcome,
}

impl<E> Observed<E> {
    pub(crate) fn new(engine: E, observer: Arc<dyn StoreObserver>) -> Self {
        Self { engine, observer }
    }

    fn begin(&self, operation: &'static str) -> Timed<'_> {
        Timed {
            observer: &*self.observer,
            operation,
            began: Instant::now(),
            outcome: Outcome::Abandoned,
        }
    }

    /// Times an operation to its end.
    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut timed = self.begin(operation);
        let done = work.await;
        timed.outcome = done.as_ref().map_or_else(Outcome::of_error, |_| Outcome::Ok);
        done
    }
}

impl Timed<'_> {
    /// Passes a row on. `None` is the end of the rows.
    fn seen<T>(&mut self, row: Option<Result<T, sqlx::Error>>) -> Option<Result<T, sqlx::Error>> {
        match &row {
            Some(Err(error)) => self.outcome = Outcome::of_driver(error),
            None if self.outcome == Outcome::Abandoned => self.outcome = Outcome::Ok,
            Some(Ok(_)) | None => (),
        }
        row
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.observer
            .operation_ended(self.operation, self.outcome, self.began.elapsed());
    }
}

#[async_trait]
impl<E: Engine> Engine for Observed<E> {
    const SKIP_LOCKED: &'static str = E::SKIP_LOCKED;
    const SHARE: &'static str = E::SHARE;
    const LOCK: &'static str = E::LOCK;
    const UNUSED: &'static str = E::UNUSED;
    const TIME: &'static str = E::TIME;
    const LISTED: &'static str = E::LISTED;
    const TREE: &'static str = E::TREE;
    const TREE_FIGURES: &'static str = E::TREE_FIGURES;
    const OLDEST_OF_TREE: &'static str = E::OLDEST_OF_TREE;
    const AND_UNINDEXED: &'static str = E::AND_UNINDEXED;
    const OLDEST_OF_PAIR: &'static str = E::OLDEST_OF_PAIR;

    fn waiting_reads(&self) -> &Arc<FairShare> {
        self.engine.waiting_reads()
    }

    fn progress_writes(&self) -> &Semaphore {
        self.engine.progress_writes()
    }

    fn content_rules(&self) -> &ContentRules {
        self.engine.content_rules()
    }

    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let mut timed = self.begin(statement.operation());
        let rows = self.engine.fetch(statement).map(Some);
        // The end of the rows is an item too, so that a stream which is dropped before is not one.
        let rows = rows.chain(stream::iter([None]));
        rows.filter_map(move |row| ready(timed.seen(row))).boxed()
    }

    async fn fetch_optional(&self, statement: Statement<'_>) -> Result<Option<EngineRow>, sqlx::Error> {
        let mut timed = self.begin(statement.operation());
        let row = self.engine.fetch_optional(statement).await;
        timed.outcome = row.as_ref().map_or_else(Outcome::of_driver, |_| Outcome::Ok);
        row
    }

    async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        self.timed(statement.operation(), self.engine.execute(statement)).await
    }

    async fn execute_returning(&self, statement: Statement<'_>) -> Result<Vec<EngineRow>, StoreError> {
        self.timed(statement.operation(), self.engine.execute_returning(statement))
            .await
    }

    async fn remove(&self, statements: Vec<Statement<'_>>, act: Option<RemovalAct>) -> Result<Vec<Tally>, StoreError> {
        let operation = statements.first().map_or("remove", Statement::operation);
        self.timed(operation, self.engine.remove(statements, act)).await
    }

    async fn transact<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
    {
        self.timed(operation, self.engine.transact(operation, work)).await
    }

    async fn run_accept(&self, row: NewAcceptance) -> Result<Attempt, StoreError> {
        self.timed(ACCEPT, self.engine.run_accept(row)).await
    }

    async fn progress_insert(&self, progress: NewProgress) -> Result<bool, StoreError> {
        self.timed(PERSIST, self.engine.progress_insert(progress)).await
    }

    async fn commit_write(&self, commit: NewCommit) -> Result<CommitOutcome, StoreError> {
        let mut timed = self.begin(COMMIT);
        let written = self.engine.commit_write(commit).await;
        timed.outcome = match &written {
            Ok((_, Ok(_))) => Outcome::Ok,
            Ok((_, Err(Refusal::Repeated(error) | Refusal::Other(error)))) => Outcome::of_refusal(error),
            Err(error) => Outcome::of_error(error),
        };
        written
    }

    async fn session_insert_on_conn(
        connection: &mut Connection<'_>,
        session: &NewSession,
        end: Option<&NewEnd>,
    ) -> Result<BranchPosition, Refusal> {
        E::session_insert_on_conn(connection, session, end).await
    }

    async fn run_end_on_conn(
        connection: &mut Connection<'_>,
        tenant: &TenantId,
        lease: &LeaseKey,
        end: &NewEnd,
    ) -> Result<(), sqlx::Error> {
        E::run_end_on_conn(connection, tenant, lease, end).await
    }

    async fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> Result<Vec<LeasedRunRow>, StoreError> {
        self.timed(LEASE, self.engine.run_lease(terms, choice)).await
    }

    async fn spend_take(&self, reservation: &NewReservation) -> Result<Decided, StoreError> {
        self.timed(RESERVE, self.engine.spend_take(reservation)).await
    }

    async fn contents_insert(&self, tenant: &TenantId, rows: Vec<NewContentRow>) -> Result<(), StoreError> {
        self.timed(PUT, self.engine.contents_insert(tenant, rows)).await
    }

    async fn contents_renew(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<RenewedContentRow>, StoreError> {
        self.timed(FIND_MISSING, self.engine.contents_renew(tenant, hashes))
            .await
    }

    fn wake_ups(&self) -> BoxStream<'static, ()> {
        self.engine.wake_ups()
    }

    fn send_command_wake_up(&self, wake_up: CommandWakeUp) {
        self.engine.send_command_wake_up(wake_up);
    }

    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp> {
        self.engine.command_wake_ups()
    }

    fn push_segments_join(select: &mut Statement<'_>) {
        E::push_segments_join(select);
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        E::push_metadata_filter(select, wanted);
    }
}

#[async_trait]
impl<E: StoreHealth> StoreHealth for Observed<E> {
    fn engine(&self) -> &'static str {
        self.engine.engine()
    }

    fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    fn connections(&self) -> Connections {
        self.engine.connections()
    }

    async fn health_check(&self) -> Result<(), StoreError> {
        self.engine.health_check().await
    }

    async fn write_check(&self) -> Result<(), StoreError> {
        self.engine.write_check().await
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
