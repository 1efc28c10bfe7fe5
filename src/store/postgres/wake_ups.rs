//! Wake-ups for the workers of all processes, by PostgreSQL's notifications. They may be lost, so
//! workers poll as well.
//!
//! One task of the store sends them, after the commit. A transaction that notifies holds a lock of
//! the whole server from before its commit is written until that is on disk
//! ([`NOTIFY`](https://www.postgresql.org/docs/current/sql-notify.html) keeps the order of
//! commits), so runs would be accepted one by one, each with a sync of its own. One notification
//! stands for all commits that came while the one before it was in flight.
//!
//! One dedicated connection listens for all streams of a store.

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

/// The pause after a failed notification.
const SEND_AGAIN: Duration = Duration::from_secs(1);

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the connection may be quiet before the server is pinged: a silent connection looks like
/// one without notifications.
const QUIET: Duration = Duration::from_secs(10);
/// The timeout of the ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The first pause before a connection is tried again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// The wake-ups of a store. Each of its two tasks begins when it is first needed, and ends with the
/// store.
#[derive(Debug)]
pub(super) struct QueueWakeUps {
    pool: PgPool,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Wakes the task that sends one.
    due: OnceLock<Arc<Notify>>,
    /// The wake-ups of all processes.
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

    /// Wakes the workers of all processes soon, as what has been committed may give them something
    /// to do.
    pub(super) fn send(&self) {
        let due = self.due.get_or_init(|| {
            let due = Arc::<Notify>::default();
            let (pool, stop, taken) = (self.pool.clone(), self.stop.clone(), Arc::clone(&due));
            // Readiness does not depend on it: without wake-ups, workers poll.
            let sending = Supervisor::default().keep("send wake-ups", move || {
                send_due(pool.clone(), stop.clone(), Arc::clone(&taken))
            });
            self.tasks.spawn(sending);
            due
        });
        due.notify_one();
    }

    /// Commits, and wakes workers even if the commit returns an error: one whose response was lost
    /// may have taken effect.
    pub(super) async fn commit(&self, transaction: Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
        let committed = transaction.commit().await;
        self.send();
        committed
    }

    /// Returns the wake-ups of all processes from now on.
    pub(super) fn stream(&self) -> BoxStream<'static, ()> {
        let received = self.received.get_or_init(|| {
            let received = Arc::<WakeUps>::default();
            // The options of the store's pool, but a connection beside it.
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

    /// Sends a pending notification, if the server can be reached, and ends both tasks.
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

/// Notifies whenever that is due. A failed notification is due again after a pause.
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

/// Passes wake-ups on for ever. Each connection begins with one, for those that were missed.
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
    // A pool for each: a silent connection occupies its slot in the pool until the server responds.
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

/// Passes wake-ups on until the connection has ended or gone silent.
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
