//! Timeouts for PostgreSQL. A silent connection would never respond, and its caller holds what
//! others need: a connection, a run, a reader's turn.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

/// Longer than a sound server takes for a statement or a whole transaction.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for an operation. One that is given up may have taken effect, as one whose answer was lost; what it leaves on its connection is
/// the pool's affair.
pub(super) fn in_time<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    within(PATIENCE, work)
}

/// Waits for an operation that has a limit of its own.
pub(super) fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // An `async fn` would hold the operation three times over: as its argument, and as what each of the two waits for.
    let done = timeout(limit, work);
    done.map(|done| done.unwrap_or_else(|elapsed| Err(sqlx::Error::Io(elapsed.into()).into())))
}

/// Waits for each row.
pub(super) fn each_in_time<'a, R: Send + 'a>(
    rows: BoxStream<'a, Result<R, sqlx::Error>>,
) -> BoxStream<'a, Result<R, sqlx::Error>> {
    let in_time = stream::try_unfold(rows, |mut rows| async {
        let row = in_time(async { rows.next().await.transpose() }).await?;
        Ok(row.map(|row| (row, rows)))
    });
    in_time.boxed()
}
