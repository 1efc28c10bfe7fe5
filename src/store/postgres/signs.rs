//! Signs over PostgreSQL: one connection of its own listens for all of a store's streams. Signs may be lost while it is away.

use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Executor as _, PgConnection, PgPool};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::patience::within;
use crate::store::signs::Signs;
use crate::supervision::Supervisor;

/// What signs are sent on; `give_sign` and `postgres/queue.rs` say it in SQL.
const CHANNEL: &str = "agent_runtime_queue";

/// How long a connection is waited for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long nothing may be heard before the server is asked on that connection: one that has gone silent looks like one without news.
const QUIET: Duration = Duration::from_secs(10);
/// How long its answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The first pause before a connection is tried again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Listens from the first stream on.
#[derive(Debug, Default)]
pub(super) struct Listener {
    stop: CancellationToken,
    started: OnceLock<Started>,
}

#[derive(Debug)]
struct Started {
    signs: Arc<Signs>,
    /// A store that is dropped listens no more.
    _guard: DropGuard,
}

impl Listener {
    /// Returns the signs from now on.
    pub(super) fn stream(&self, pool: &PgPool, tasks: &TaskTracker) -> BoxStream<'static, ()> {
        let started = self.started.get_or_init(|| {
            let signs = Arc::<Signs>::default();
            let stop = self.stop.clone();
            // The options of the store's own connections, and none of their number.
            let options = pool.connect_options().as_ref().clone();
            let heard = Arc::clone(&signs);
            // Begun again after a panic. Readiness need not tell: without signs, workers look by themselves.
            let listening =
                Supervisor::default().keep("hear signs", move || listen(options.clone(), Arc::clone(&heard)));
            tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => (),
                    () = listening => (),
                }
            });
            Started {
                signs,
                _guard: self.stop.clone().drop_guard(),
            }
        });
        started.signs.stream()
    }

    /// Ends the connection.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// Gives a sign to the workers of all processes when the transaction is committed.
pub(super) async fn give_sign(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("select pg_notify('agent_runtime_queue', '')")
        .execute(connection)
        .await?;
    Ok(())
}

/// Passes signs on for ever. Each connection begins with one, for what was missed.
async fn listen(options: PgConnectOptions, signs: Arc<Signs>) {
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
        signs.give();
        let lost = hear(&mut listener, &signs).await;
        let error = lost.as_ref().err().map(|error| error as &dyn StdError);
        tracing::warn!(error, "the connection for signs is lost");
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    // A pool for each: a silent connection keeps its place in the pool, since it is not given up before the server has answered.
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

/// Passes signs on until the connection has ended or gone silent.
async fn hear(listener: &mut PgListener, signs: &Signs) -> Result<(), sqlx::Error> {
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(_))) => signs.give(),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                within(ANSWER_TIMEOUT, listener.execute("select 1")).await?;
            }
        }
    }
}
