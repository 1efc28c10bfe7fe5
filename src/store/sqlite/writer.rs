//! The committer on SQLite: each batch is one transaction on the one connection that writes.
//!
//! Each write of a batch has a savepoint. One that fails is rolled back to it, and the others go
//! on. They are all committed together, and only then do their callers get their results. If the
//! transaction itself fails, so do all of its writes: the disk is full, or the file is damaged or
//! locked by another process.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::{Connection as _, SqliteConnection, SqlitePool};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use crate::store::committer::{Committer, Write};
use crate::store::driver_error::shared_store_error;
use crate::store::error::StoreError;
use crate::store::sql::Ended;
use crate::store::wake_ups::WakeUps;

/// A batch that has worked for so long is committed. Its other writes get a transaction of their
/// own.
const MAX_TIME: Duration = Duration::from_millis(20);

/// Executes writes in batches, each to its end even if its caller is cancelled meanwhile.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    committer: Arc<Committer<PendingWrite>>,
    pool: SqlitePool,
    /// Wakes the workers of this process.
    wake_ups: Arc<WakeUps>,
}

impl SqliteWriter {
    /// Creates a writer on a pool of one connection.
    pub(super) fn new(pool: SqlitePool, wake_ups: Arc<WakeUps>) -> Self {
        let of_batches = pool.clone();
        Self {
            committer: Committer::new(move |batch| execute(of_batches.clone(), batch).boxed()),
            pool,
            wake_ups,
        }
    }

    /// Executes a write. If it fails or ends as rolled back, nothing of it is stored.
    pub(super) async fn write<T, E, F>(&self, operation: &'static str, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Ended<T>, E>> + Send + 'static,
    {
        let (caller, result) = oneshot::channel();
        self.committer.submit(PendingWrite(Box::new(TypedWrite {
            operation,
            work: Some(work),
            span: Span::current(),
            done: None,
            wake_ups: Arc::clone(&self.wake_ups),
            caller,
        })));
        result.await.map_err(StoreError::failed(operation))?
    }

    /// Waits for all writes, and closes the connection.
    pub(super) async fn close(&self) {
        self.committer.close().await;
        self.pool.close().await;
    }
}

/// A write of any type that waits for its batch.
struct PendingWrite(Box<dyn AnyWrite>);

impl Write for PendingWrite {
    /// One write sees what those before it have written, so they may do the same.
    type Key = ();

    fn key(&self) -> Option<()> {
        None
    }

    fn bytes(&self) -> usize {
        // They are in memory, and stay there until their turn. Batches are bounded by time.
        0
    }

    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

trait AnyWrite: Send {
    fn is_wanted(&self) -> bool;

    /// Does the work. Returns whether to commit it.
    fn execute<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, bool>;

    /// Replies to the caller: with the result, or with the error of the transaction.
    fn reply(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>);
}

struct TypedWrite<T, E, F> {
    operation: &'static str,
    work: Option<F>,
    span: Span,
    done: Option<Result<Ended<T>, E>>,
    wake_ups: Arc<WakeUps>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> AnyWrite for TypedWrite<T, E, F>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Ended<T>, E>> + Send + 'static,
{
    fn is_wanted(&self) -> bool {
        !self.caller.is_closed()
    }

    fn execute<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, bool> {
        let Some(work) = self.work.take() else {
            return std::future::ready(false).boxed();
        };
        let work = work(connection).instrument(self.span.clone());
        async {
            let done = work.await;
            let is_committed = matches!(done, Ok(Ended::Committed(_) | Ended::CommittedForWorkers(_)));
            self.done = Some(done);
            is_committed
        }
        .boxed()
    }

    fn reply(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>) {
        let result = match (self.done, committed) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(ended)), Ok(())) => Ok(match ended {
                Ended::Committed(value) | Ended::RolledBack(value) => value,
                Ended::CommittedForWorkers(value) => {
                    self.wake_ups.send();
                    value
                }
            }),
            (_, Err(error)) => Err(shared_store_error(self.operation, error).into()),
            (None, Ok(())) => return,
        };
        // The caller may be gone.
        let _ = self.caller.send(result);
    }
}

async fn execute(pool: SqlitePool, batch: Vec<PendingWrite>) {
    let mut waiting = batch.into_iter();
    while !waiting.as_slice().is_empty() {
        let mut taken = Vec::with_capacity(waiting.len());
        let committed = transaction(&pool, &mut waiting, &mut taken).await;
        let committed = committed.map_err(Arc::new);
        if taken.is_empty() {
            // No transaction could begin, so none of them can be written.
            taken.extend(waiting.by_ref().map(|write| write.0));
        }
        for write in taken {
            write.reply(committed.clone());
        }
    }
}

/// Executes writes in one transaction until its time is over. An error drops the transaction, which
/// rolls it back.
async fn transaction(
    pool: &SqlitePool,
    waiting: &mut vec::IntoIter<PendingWrite>,
    taken: &mut Vec<Box<dyn AnyWrite>>,
) -> Result<(), sqlx::Error> {
    let begun = Instant::now();
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    let is_alone = waiting.len() == 1;
    if !is_alone {
        run_script(&mut transaction, "savepoint write").await?;
    }
    for PendingWrite(mut write) in waiting.by_ref() {
        let is_committed = write.execute(&mut transaction).await;
        taken.push(write);
        if is_alone && !is_committed {
            return transaction.rollback().await;
        }
        if is_alone {
            break;
        }
        let end = if is_committed {
            "release write; savepoint write"
        } else {
            "rollback to write"
        };
        run_script(&mut transaction, end).await?;
        if begun.elapsed() > MAX_TIME {
            break;
        }
    }
    transaction.commit().await
}

async fn run_script(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}
