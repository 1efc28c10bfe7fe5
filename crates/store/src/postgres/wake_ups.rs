//! Wakes workers and waiters for commands in all processes, with PostgreSQL's notifications. A
//! notification may be lost, so they poll as well.
//!
//! One task of the store sends the notifications, after the commits. A transaction with a
//! [`NOTIFY`](https://www.postgresql.org/docs/current/sql-notify.html) would hold a lock on the
//! whole server while its commit is written to disk, since notifications arrive in the order of the
//! commits. Runs would then be accepted one by one, each with its own sync. While a notification is
//! in flight, further commits share the next one.
//!
//! One dedicated connection receives the notifications for all streams of a store.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Executor as _, PgPool, Postgres, Transaction};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::timeouts::{in_time, within};
use crate::commands::CommandWakeUp;
use crate::driver_error::store_error;
use crate::outage::Outage;
use crate::wake_ups::{CommandWakeUps, WakeUps};
use tasks::supervision::Supervisor;

/// The channel of the notifications about the queue of runs.
const QUEUE: &str = "agent_runtime_queue";
/// The channel of the notifications about commands.
const COMMANDS: &str = "agent_runtime_commands";

/// Sends several notifications: the channels, and the payloads.
const NOTIFY: &str =
    "select pg_notify(due.channel, due.payload) from unnest($1::text[], $2::text[]) due (channel, payload)";

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
    /// The connection that receives the notifications.
    listen_options: PgConnectOptions,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The notifications to send.
    due: OnceLock<Arc<Due>>,
    /// The wake-ups that all processes have sent.
    received: OnceLock<Arc<Received>>,
}

/// The notifications to send, each once.
#[derive(Debug, Default)]
struct Due {
    notifications: Mutex<BTreeSet<Notification>>,
    /// Wakes the task that sends them.
    added: Notify,
}

/// A notification: its channel and its payload.
type Notification = (&'static str, String);

/// The wake-ups that all processes have sent.
#[derive(Debug, Default)]
struct Received {
    queue: WakeUps,
    commands: CommandWakeUps,
}

impl QueueWakeUps {
    pub(super) fn new(pool: PgPool, listen_options: PgConnectOptions) -> Self {
        Self {
            pool,
            listen_options,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            due: OnceLock::new(),
            received: OnceLock::new(),
        }
    }

    /// Wakes the workers of all processes soon, since a commit may have left work for them.
    pub(super) fn send(&self) {
        self.notify((QUEUE, String::new()));
    }

    /// Wakes workers that run commands, and callers that wait for them.
    pub(super) fn send_command(&self, wake_up: CommandWakeUp) {
        self.notify((COMMANDS, payload(wake_up)));
    }

    fn notify(&self, notification: Notification) {
        let due = self.due.get_or_init(|| {
            let due = Arc::<Due>::default();
            let (pool, stop, taken) = (self.pool.clone(), self.stop.clone(), Arc::clone(&due));
            // The service is ready without this task: without wake-ups, workers poll.
            let sending = Supervisor::default().keep("send wake-ups", move || {
                send_due(pool.clone(), stop.clone(), Arc::clone(&taken))
            });
            self.tasks.spawn(sending);
            due
        });
        due.add([notification]);
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
        self.received().queue.stream()
    }

    /// Returns a stream of the wake-ups about commands.
    pub(super) fn command_stream(&self) -> BoxStream<'static, CommandWakeUp> {
        self.received().commands.stream()
    }

    fn received(&self) -> &Received {
        self.received.get_or_init(|| {
            let received = Arc::<Received>::default();
            let options = self.listen_options.clone();
            let wake_ups = Arc::clone(&received);
            let receiving = Supervisor::default().keep("receive wake-ups", move || {
                listen(options.clone(), Arc::clone(&wake_ups))
            });
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(receiving));
            received
        })
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

impl Due {
    fn add(&self, notifications: impl IntoIterator<Item = Notification>) {
        self.notifications.lock().extend(notifications);
        self.added.notify_one();
    }
}

/// Writes a wake-up as the payload of a notification.
fn payload(wake_up: CommandWakeUp) -> String {
    match wake_up {
        CommandWakeUp::Waiting => "waiting".to_owned(),
        CommandWakeUp::Progressed(command_id) => format!("progressed {command_id}"),
        CommandWakeUp::Stopped(command_id) => format!("stopped {command_id}"),
        CommandWakeUp::Missed => "missed".to_owned(),
    }
}

/// Reads a wake-up. An unknown notification, for example of a later version, may be about anything.
fn wake_up(payload: &str) -> CommandWakeUp {
    let (kind, id) = payload.split_once(' ').unwrap_or((payload, ""));
    match (kind, id.parse()) {
        ("waiting", _) => CommandWakeUp::Waiting,
        ("progressed", Ok(command_id)) => CommandWakeUp::Progressed(command_id),
        ("stopped", Ok(command_id)) => CommandWakeUp::Stopped(command_id),
        _ => CommandWakeUp::Missed,
    }
}

/// Sends a notification when one is due. Retries a failed one after a pause.
async fn send_due(pool: PgPool, stop: CancellationToken, due: Arc<Due>) {
    let mut outage = Outage::default();
    loop {
        tokio::select! {
            biased;
            () = due.added.notified() => (),
            () = stop.cancelled() => return,
        }
        let notifications = std::mem::take(&mut *due.notifications.lock());
        if notifications.is_empty() {
            continue;
        }
        let (channels, payloads): (Vec<_>, Vec<_>) = notifications.iter().cloned().unzip();
        let statement = sqlx::query(NOTIFY).bind(channels).bind(payloads);
        let sent = in_time(statement.execute(&pool)).await;
        let sent = sent.map_err(store_error("wake workers"));
        outage.note("no workers are woken", &sent);
        if sent.is_err() {
            due.add(notifications);
            if stop.run_until_cancelled(sleep(SEND_AGAIN)).await.is_none() {
                return;
            }
        }
    }
}

/// Forwards wake-ups until it is cancelled. Sends one after each connect, since notifications may
/// have been missed before.
async fn listen(options: PgConnectOptions, received: Arc<Received>) {
    loop {
        let backoff = ExponentialBuilder::default()
            .with_min_delay(PAUSES[0])
            .with_max_delay(PAUSES[1])
            .with_jitter()
            .without_max_times();
        let connect = || within(CONNECT_TIMEOUT, connect(&options));
        let mut is_noted = false;
        let retrying = connect.retry(backoff).notify(|error, _| {
            if !std::mem::replace(&mut is_noted, true) {
                let error = error as &dyn StdError;
                tracing::warn!(error, "no wake-ups are received, so runs begin when a worker polls");
            }
        });
        let Ok(mut listener) = retrying.await else {
            return;
        };
        received.queue.send();
        received.commands.send(CommandWakeUp::Missed);
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
    listener.listen_all([QUEUE, COMMANDS]).await?;
    Ok(listener)
}

/// Forwards wake-ups until the connection ends or no longer responds.
async fn receive(listener: &mut PgListener, received: &Received) -> Result<(), sqlx::Error> {
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(notification))) if notification.channel() == COMMANDS => {
                received.commands.send(wake_up(notification.payload()));
            }
            Ok(Ok(Some(_))) => received.queue.send(),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                within(ANSWER_TIMEOUT, listener.execute("select 1")).await?;
            }
        }
    }
}
