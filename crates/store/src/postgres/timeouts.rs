//! Timeouts of operations on PostgreSQL. A dead connection never responds, and its caller would
//! block others: it holds a connection of the pool, a run or a reader's turn.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

/// The timeout: longer than a healthy server needs for a statement or a whole transaction.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that was idle for longer is tested before it is used, since all open connections
/// are dead after a restart of the server.
///
/// Under load no connection is idle for so long, so the test costs a round trip only when there is
/// time for it.
pub(super) const TRUSTED_IDLE: Duration = Duration::from_millis(100);

/// Bounds an operation by the default timeout. A timed-out operation may have taken effect. The
/// pool cleans up its connection.
pub(super) fn in_time<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    within(TIMEOUT, work)
}

/// Bounds an operation by the given timeout.
pub(super) fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // Not an `async fn`, whose future would contain the operation three times: as the argument and
    // in both awaited futures.
    let done = timeout(limit, work);
    done.map(|done| done.unwrap_or_else(|elapsed| Err(sqlx::Error::Io(elapsed.into()).into())))
}

/// Bounds the wait for each row by the default timeout.
pub(super) fn each_in_time<'a, R: Send + 'a>(
    rows: BoxStream<'a, Result<R, sqlx::Error>>,
) -> BoxStream<'a, Result<R, sqlx::Error>> {
    let in_time = stream::try_unfold(rows, |mut rows| async {
        let row = in_time(async { rows.next().await.transpose() }).await?;
        Ok(row.map(|row| (row, rows)))
    });
    in_time.boxed()
}
