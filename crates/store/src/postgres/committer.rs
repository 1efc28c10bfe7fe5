//! The committer on PostgreSQL: each batch has one statement for each kind of write in it, on a
//! connection of its own.
//!
//! A statement decides about each of its writes, or about none:
//!
//! - It is committed. Its decision about a write, for example that a position is taken, is the
//!   result for the caller of the write.
//! - It failed, and with it all of its writes. Then each caller executes its write alone, on a
//!   connection of the pool. So the write that failed the batch fails for its own caller only, and
//!   a write that waits for a lock delays only its own caller. A write that was alone in its
//!   statement has failed, unless it waited for a lock.
//! - Its connection is lost, so it may be committed or not. This counts as a failure. If it takes
//!   too long, each caller executes its write alone. All writes may be repeated: the second attempt
//!   finds the rows of the first.

use std::error::Error;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::Connection as _;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::batch_write::{BatchWrite, WriteKey};
use super::commit_batch::PlainCommit;
use super::own_connection::OwnConnection;
use super::server_settings::{LOCAL_BATCH_SETTINGS, Pooler};
use super::statistics::Statistics;
use crate::committer::{Committer, Write};
use crate::driver_error::is_lock_timeout;
use crate::error::StoreError;
use crate::new_acceptance::NewAcceptance;
use crate::new_progress::NewProgress;
use crate::observer::StoreObserver;

/// A larger write is executed alone, since all others of its batch would wait for it.
const MAX_BATCHED_BYTES: usize = 256 << 10;
/// How long a statement of a batch may take. All other writes of the process wait for it, so it is
/// shorter than the timeout of a single write: a network may have forgotten the connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Executes writes in batches.
#[derive(Debug)]
pub(super) struct PostgresCommitter {
    committer: Arc<Committer<AnyWrite>>,
    connection: Arc<OwnConnection>,
    statistics: Arc<Statistics>,
}

/// A write that waits for its batch.
#[derive(Debug)]
pub(super) struct Submitted<W: BatchWrite> {
    write: W,
    caller: oneshot::Sender<(W, Outcome<W::Decision>)>,
}

/// The decision of a batch about a write, or the error of a write that failed although it was
/// alone. `None` if the write has to be executed alone.
type Outcome<D> = Option<Result<D, sqlx::Error>>;

/// A write of any kind.
#[derive(Debug)]
pub(super) enum AnyWrite {
    Accept(Box<Submitted<NewAcceptance>>),
    Progress(Box<Submitted<NewProgress>>),
    Commit(Box<Submitted<PlainCommit>>),
}

impl PostgresCommitter {
    /// Creates a committer. It connects with its first batch.
    pub(super) fn new(
        connection: OwnConnection,
        statistics: Statistics,
        observer: Option<Arc<dyn StoreObserver>>,
    ) -> Self {
        let (connection, statistics) = (Arc::new(connection), Arc::new(statistics));
        let (executing, counting) = (Arc::clone(&connection), Arc::clone(&statistics));
        Self {
            committer: Committer::new(observer, move |batch| {
                counting.count_batch();
                execute(Arc::clone(&executing), batch).boxed()
            }),
            connection,
            statistics,
        }
    }

    /// Executes a write in a batch, unless it is large. Returns it with its outcome.
    pub(super) async fn execute<W: BatchWrite>(
        &self,
        write: W,
        kind: fn(Box<Submitted<W>>) -> AnyWrite,
    ) -> Result<(W, Outcome<W::Decision>), StoreError> {
        if write.bytes() > MAX_BATCHED_BYTES {
            return Ok((write, None));
        }
        let (caller, decided) = oneshot::channel();
        self.committer.submit(kind(Box::new(Submitted { write, caller })));
        decided.await.map_err(StoreError::failed("execute a batch"))
    }

    /// Waits for the batches in flight, and closes the connection.
    pub(super) async fn close(&self) {
        self.committer.close().await;
        self.statistics.close().await;
        self.connection.close().await;
    }
}

impl<W: BatchWrite> Write for Submitted<W> {
    type Key = WriteKey;

    fn key(&self) -> Option<WriteKey> {
        self.write.key()
    }

    fn bytes(&self) -> usize {
        self.write.bytes()
    }

    fn is_wanted(&self) -> bool {
        !self.caller.is_closed()
    }
}

impl AnyWrite {
    fn submitted(&self) -> &dyn Write<Key = WriteKey> {
        match self {
            Self::Accept(submitted) => &**submitted,
            Self::Progress(submitted) => &**submitted,
            Self::Commit(submitted) => &**submitted,
        }
    }
}

impl Write for AnyWrite {
    type Key = WriteKey;

    fn key(&self) -> Option<WriteKey> {
        self.submitted().key()
    }

    fn bytes(&self) -> usize {
        self.submitted().bytes()
    }

    fn is_wanted(&self) -> bool {
        self.submitted().is_wanted()
    }
}

async fn execute(connection: Arc<OwnConnection>, batch: Vec<AnyWrite>) {
    let (mut accepts, mut progress, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for write in batch {
        match write {
            AnyWrite::Accept(submitted) => accepts.push(*submitted),
            AnyWrite::Progress(submitted) => progress.push(*submitted),
            AnyWrite::Commit(submitted) => commits.push(*submitted),
        }
    }
    execute_kind(&connection, accepts).await;
    execute_kind(&connection, progress).await;
    execute_kind(&connection, commits).await;
}

/// Executes writes of one kind, and replies to their callers.
async fn execute_kind<W: BatchWrite>(own: &OwnConnection, submitted: Vec<Submitted<W>>) {
    if submitted.is_empty() {
        return;
    }
    let writes: Vec<_> = submitted.iter().map(|submitted| &submitted.write).collect();
    let executed = timeout(STATEMENT_TIMEOUT, execute_statement(own, &writes)).await;
    let is_alone = writes.len() == 1;
    let outcomes: Vec<Outcome<W::Decision>> = match executed {
        Ok(Ok(decisions)) => decisions.into_iter().map(|decision| Some(Ok(decision))).collect(),
        Ok(Err(error)) if is_alone && !is_lock_timeout(&error) => vec![Some(Err(error))],
        Ok(Err(error)) => undecided(writes.len(), &error),
        Err(elapsed) => undecided(writes.len(), &elapsed),
    };
    for (submitted, outcome) in submitted.into_iter().zip(outcomes) {
        // The caller may be gone.
        let _ = submitted.caller.send((submitted.write, outcome));
    }
}

/// Returns the outcomes of a batch that failed with so many writes.
fn undecided<D>(writes: usize, error: &(dyn Error + 'static)) -> Vec<Outcome<D>> {
    tracing::debug!(writes, error, "a batch failed, so each of its writes is executed alone");
    iter::repeat_with(|| None).take(writes).collect()
}

/// An error drops the connection, which closes it.
async fn execute_statement<W: BatchWrite>(own: &OwnConnection, writes: &[&W]) -> Result<Vec<W::Decision>, sqlx::Error> {
    let mut connection = own.take().await?;
    let decisions = match own.pooler {
        Pooler::Absent => W::execute_all(&mut connection, writes).await?,
        Pooler::Present => {
            let mut transaction = connection.begin().await?;
            sqlx::raw_sql(LOCAL_BATCH_SETTINGS).execute(&mut *transaction).await?;
            let decisions = W::execute_all(&mut transaction, writes).await?;
            transaction.commit().await?;
            decisions
        }
    };
    own.put_back(connection);
    Ok(decisions)
}
