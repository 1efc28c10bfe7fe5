//! Timeouts of operations on PostgreSQL. A connection that has gone silent never responds, and its
//! caller holds what others need: a connection of the pool, a run, a reader's turn.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

/// Longer than a healthy server takes for a statement or a whole transaction.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bounds an operation by the timeout. One that timed out may have taken effect. The pool cleans up
/// its connection.
pub(super) fn in_time<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    within(TIMEOUT, work)
}

/// Bounds an operation by a timeout of its own.
pub(super) fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // An `async fn` would hold the operation three times over: as its argument, and as what each of
    // the two waits for.
    let done = timeout(limit, work);
    done.map(|done| done.unwrap_or_else(|elapsed| Err(sqlx::Error::Io(elapsed.into()).into())))
}

/// Bounds the wait for each row by the timeout.
pub(super) fn each_in_time<'a, R: Send + 'a>(
    rows: BoxStream<'a, Result<R, sqlx::Error>>,
) -> BoxStream<'a, Result<R, sqlx::Error>> {
    let in_time = stream::try_unfold(rows, |mut rows| async {
        let row = in_time(async { rows.next().await.transpose() }).await?;
        Ok(row.map(|row| (row, rows)))
    });
    in_time.boxed()
}
