//! Wakes the workers of all processes with PostgreSQL's notifications. A notification may be lost,
//! so workers poll as well.
//!
//! One task of the store sends the notifications, after the commits. A transaction with a
//! [`NOTIFY`](https://www.postgresql.org/docs/current/sql-notify.html) would hold a lock on the
//! whole server while its commit is written to disk, since notifications arrive in the order of the
//! commits. Runs would then be accepted one by one, each with its own sync. While a notification is
//! in flight, further commits share the next one.
//!
//! One dedicated connection receives the notifications for all streams of a store.

use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Executor as _, PgPool, Postgres, Transaction};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::timeouts::{in_time, within};
use crate::store::driver_error::store_error;
use crate::store::outage::Outage;
use crate::store::wake_ups::WakeUps;
use crate::supervision::Supervisor;

/// The channel of the notifications.
const CHANNEL: &str = "agent_runtime_queue";

/// The pause before a failed notification is sent again.
const SEND_AGAIN: Duration = Duration::from_secs(1);

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time without notifications after which the listener pings the server, since the connection
/// may be dead.
const QUIET: Duration = Duration::from_secs(10);
/// The timeout of a ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The first and the longest pause between two connection attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Sends and receives the wake-ups of a store. Each of the two tasks starts when it is first needed
/// and ends with the store.
#[derive(Debug)]
pub(super) struct QueueWakeUps {
    pool: PgPool,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Wakes the task that sends notifications.
    due: OnceLock<Arc<Notify>>,
    /// The wake-ups that all processes have sent.
    received: OnceLock<Arc<WakeUps>>,
}

impl QueueWakeUps {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            due: OnceLock::new(),
            received: OnceLock::new(),
        }
    }

    /// Wakes the workers of all processes soon, since a commit may have left work for them.
    pub(super) fn send(&self) {
        let due = self.due.get_or_init(|| {
            let due = Arc::<Notify>::default();
            let (pool, stop, taken) = (self.pool.clone(), self.stop.clone(), Arc::clone(&due));
            // The service is ready without this task: without wake-ups, workers poll.
            let sending = Supervisor::default().keep("send wake-ups", move || {
                send_due(pool.clone(), stop.clone(), Arc::clone(&taken))
            });
            self.tasks.spawn(sending);
            due
        });
        due.notify_one();
    }

    /// Commits a transaction and wakes workers. Wakes them after an error as well: the commit may
    /// have taken effect although its response was lost.
    pub(super) async fn commit(&self, transaction: Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
        let committed = transaction.commit().await;
        self.send();
        committed
    }

    /// Returns a stream of the wake-ups that arrive from now on, sent by any process.
    pub(super) fn stream(&self) -> BoxStream<'static, ()> {
        let received = self.received.get_or_init(|| {
            let received = Arc::<WakeUps>::default();
            // Connects as the store's pool does, but outside of the pool.
            let options = self.pool.connect_options().as_ref().clone();
            let wake_ups = Arc::clone(&received);
            let receiving = Supervisor::default().keep("receive wake-ups", move || {
                listen(options.clone(), Arc::clone(&wake_ups))
            });
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(receiving));
            received
        });
        received.stream()
    }

    /// Sends a pending notification if the server can be reached. Then ends both tasks.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for QueueWakeUps {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Sends a notification when one is due. Retries a failed one after a pause.
async fn send_due(pool: PgPool, stop: CancellationToken, due: Arc<Notify>) {
    let mut outage = Outage::default();
    loop {
        tokio::select! {
            biased;
            () = due.notified() => (),
            () = stop.cancelled() => return,
        }
        let statement = sqlx::query("select pg_notify($1, '')").bind(CHANNEL);
        let sent = in_time(statement.execute(&pool)).await;
        let sent = sent.map_err(store_error("wake workers"));
        outage.note("no workers are woken", &sent);
        if sent.is_err() {
            due.notify_one();
            if stop.run_until_cancelled(sleep(SEND_AGAIN)).await.is_none() {
                return;
            }
        }
    }
}

/// Forwards wake-ups until it is cancelled. Sends one after each connect, since notifications may
/// have been missed before.
async fn listen(options: PgConnectOptions, received: Arc<WakeUps>) {
    loop {
        let backoff = ExponentialBuilder::default()
            .with_min_delay(PAUSES[0])
            .with_max_delay(PAUSES[1])
            .with_jitter()
            .without_max_times();
        let connect = || within(CONNECT_TIMEOUT, connect(&options));
        let Ok(mut listener) = connect.retry(backoff).await else {
            return;
        };
        received.send();
        let lost = receive(&mut listener, &received).await;
        let error = lost.as_ref().err().map(|error| error as &dyn StdError);
        tracing::warn!(error, "the connection for wake-ups is lost");
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    // Each connection has its own pool: a dead one occupies its slot in the pool until the server
    // responds.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Forwards wake-ups until the connection ends or no longer responds.
async fn receive(listener: &mut PgListener, received: &WakeUps) -> Result<(), sqlx::Error> {
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(_))) => received.send(),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                within(ANSWER_TIMEOUT, listener.execute("select 1")).await?;
            }
        }
    }
}
