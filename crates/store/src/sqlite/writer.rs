//! The committer on SQLite: each batch is one transaction on the only connection that writes.
//!
//! Each write of a batch has a savepoint. A write that fails or panics is rolled back to its
//! savepoint, and the other writes go on. They are all committed together, and only then do their
//! callers get their results. If the transaction itself fails, so do all of its writes: the disk is
//! full, or the file is damaged or locked by another process.
//!
//! If the disk is full, SQLite may roll back the whole transaction together with one write. Then
//! the other writes of the transaction are not stored either, and may be repeated. The driver does
//! not notice such a rollback, and its connection could begin no other transaction. So the
//! connection is closed after each transaction that fails.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::{Connection as _, SqliteConnection, SqlitePool};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use crate::committer::{Committer, Write};
use crate::driver_error::{shared_store_error, store_error};
use crate::error::StoreError;
use crate::observer::StoreObserver;
use crate::sql::Ended;
use crate::wake_ups::WakeUps;

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
    pub(super) fn new(pool: SqlitePool, wake_ups: Arc<WakeUps>, observer: Option<Arc<dyn StoreObserver>>) -> Self {
        let batch_pool = pool.clone();
        Self {
            committer: Committer::new(observer, move |batch| execute(batch_pool.clone(), batch).boxed()),
            pool,
            wake_ups,
        }
    }

    /// Executes a write. If it fails or ends as rolled back, nothing of it is stored.
    pub(super) async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
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
    /// No write excludes another one: each sees the rows of the writes before it.
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

struct TypedWrite<T, F> {
    operation: &'static str,
    work: Option<F>,
    span: Span,
    done: Option<Result<Ended<T>, sqlx::Error>>,
    wake_ups: Arc<WakeUps>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> AnyWrite for TypedWrite<T, F>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
{
    fn is_wanted(&self) -> bool {
        !self.caller.is_closed()
    }

    fn execute<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, bool> {
        let Some(work) = self.work.take() else {
            return std::future::ready(false).boxed();
        };
        async {
            let done = work(connection).instrument(self.span.clone()).await;
            let is_committed = matches!(done, Ok(Ended::Committed(_) | Ended::CommittedForWorkers(_)));
            self.done = Some(done);
            is_committed
        }
        .boxed()
    }

    fn reply(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>) {
        let result = match (self.done, committed) {
            (Some(Err(error)), _) => Err(store_error(self.operation)(error)),
            (Some(Ok(ended)), Ok(())) => Ok(match ended {
                Ended::Committed(value) | Ended::RolledBack(value) => value,
                Ended::CommittedForWorkers(value) => {
                    self.wake_ups.send();
                    value
                }
            }),
            (_, Err(error)) => Err(shared_store_error(self.operation, error)),
            (None, Ok(())) => return,
        };
        // The caller may be gone.
        let _ = self.caller.send(result);
    }
}

async fn execute(pool: SqlitePool, batch: Vec<PendingWrite>) {
    let mut waiting = batch.into_iter();
    while !waiting.as_slice().is_empty() {
        let before = waiting.len();
        let mut taken = Vec::with_capacity(before);
        let committed = transaction(&pool, &mut waiting, &mut taken).await;
        let committed = committed.map_err(Arc::new);
        if waiting.len() == before {
            // No transaction could begin, so none of them can be written.
            taken.extend(waiting.by_ref().map(|write| write.0));
        }
        for write in taken {
            write.reply(committed.clone());
        }
    }
}

/// Executes writes in one transaction until its time is over.
async fn transaction(
    pool: &SqlitePool,
    waiting: &mut vec::IntoIter<PendingWrite>,
    taken: &mut Vec<Box<dyn AnyWrite>>,
) -> Result<(), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let committed = execute_writes(&mut connection, waiting, taken).await;
    if committed.is_err() {
        // The pool opens another one. An error of closing this one says nothing about the writes.
        drop(connection.close().await);
    }
    committed
}

/// An error drops the transaction, which rolls it back.
async fn execute_writes(
    connection: &mut SqliteConnection,
    waiting: &mut vec::IntoIter<PendingWrite>,
    taken: &mut Vec<Box<dyn AnyWrite>>,
) -> Result<(), sqlx::Error> {
    let begun = Instant::now();
    let mut transaction = connection.begin_with("begin immediate").await?;
    let is_alone = waiting.len() == 1;
    if !is_alone {
        run_script(&mut transaction, "savepoint write").await?;
    }
    for PendingWrite(mut write) in waiting.by_ref() {
        let executing = AssertUnwindSafe(write.execute(&mut transaction)).catch_unwind();
        let is_committed = executing.await.unwrap_or(false);
        if is_alone && !is_committed {
            write.reply(Ok(()));
            return transaction.rollback().await;
        }
        if is_committed {
            taken.push(write);
            if is_alone {
                break;
            }
            run_script(&mut transaction, "release write; savepoint write").await?;
        } else if let Err(error) = run_script(&mut transaction, "rollback to write").await {
            // Its own result is right: nothing of it is stored.
            write.reply(Ok(()));
            return Err(rolled_back(error));
        } else {
            taken.push(write);
        }
        if begun.elapsed() > MAX_TIME {
            break;
        }
    }
    transaction.commit().await
}

/// Returns the error of writes that were rolled back together with one for which there was no room.
/// They may be repeated.
fn rolled_back(error: sqlx::Error) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::StorageFull, error))
}

async fn run_script(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use sqlx::Row as _;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
    use tempfile::TempDir;

    use super::*;

    /// A writer with an empty table of notes.
    async fn writer() -> (SqliteWriter, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("notes.db"))
            .journal_mode(SqliteJournalMode::Wal)
            .create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options);
        let writer = SqliteWriter::new(pool, Arc::default(), None);
        execute_on(&writer, "create table notes (note blob)").await;
        (writer, folder)
    }

    async fn execute_on(writer: &SqliteWriter, sql: &'static str) {
        let mut connection = writer.pool.acquire().await.unwrap();
        run_script(&mut connection, sql).await.unwrap();
    }

    async fn count(writer: &SqliteWriter) -> i64 {
        let query = sqlx::query("select count(*) from notes");
        query.fetch_one(&writer.pool).await.unwrap().get(0)
    }

    /// Inserts a note. An error is the value of a write that is rolled back, as with a commit.
    async fn insert(writer: &SqliteWriter, bytes: i64) -> Result<Result<(), StoreError>, StoreError> {
        let inserting = writer.write("insert a note", move |connection| {
            async move {
                let insert = sqlx::query("insert into notes values (zeroblob($1))").bind(bytes);
                Ok(match insert.execute(connection).await {
                    Ok(_) => Ended::Committed(Ok(())),
                    Err(error) => Ended::RolledBack(Err(store_error("insert a note")(error))),
                })
            }
            .boxed()
        });
        inserting.await
    }

    /// SQLite rolls back the whole transaction together with a write for which there is no room.
    #[tokio::test(flavor = "current_thread")]
    async fn a_write_without_room_fails_others_only_for_now() {
        let (writer, _folder) = writer().await;
        // As many pages as a small note has, and none for a large one.
        execute_on(&writer, "pragma max_page_count = 1").await;
        let (small, large) = (10, 1 << 20);
        let alone = insert(&writer, large).await.unwrap();
        assert!(alone.unwrap_err().is_transient());
        execute_on(&writer, "pragma max_page_count = 1").await;
        // The first one is a batch of its own, and the others are the next.
        let notes = [small, small, large, small].map(|bytes| insert(&writer, bytes));
        let [first, before, without_room, after] = join_all(notes).await.try_into().unwrap();
        first.unwrap().unwrap();
        assert!(before.unwrap_err().is_transient());
        assert!(without_room.unwrap().unwrap_err().is_transient());
        after.unwrap().unwrap();
        assert_eq!(count(&writer).await, 2);
        insert(&writer, large).await.unwrap().unwrap();
        writer.close().await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_write_that_panics_fails_no_other() {
        let (writer, _folder) = writer().await;
        let panicking = async || {
            let write = writer.write("panic", |connection| {
                async move {
                    run_script(connection, "insert into notes values ('half')")
                        .await
                        .unwrap();
                    panic!("the write panics");
                }
                .boxed()
            });
            write.await as Result<(), StoreError>
        };
        let alone = panicking().await;
        assert!(!alone.unwrap_err().is_transient());
        let (first, second, panicked, third) =
            tokio::join!(insert(&writer, 1), insert(&writer, 2), panicking(), insert(&writer, 3));
        assert!(!panicked.unwrap_err().is_transient());
        for inserted in [first, second, third] {
            inserted.unwrap().unwrap();
        }
        assert_eq!(count(&writer).await, 3);
        writer.close().await;
    }
}
