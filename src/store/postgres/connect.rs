//! Connects to PostgreSQL.

use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::PostgresStore;
use super::committer::PostgresCommitter;
use super::timeouts::within;
use super::wake_ups::QueueWakeUps;
use crate::fair_share::FairShare;
use crate::store::content_settings::ContentRules;
use crate::store::open::{OpenError, StoreSettings};
use crate::store::sql::half_of;

/// A connection that was idle for longer is tested before it is used, since all open connections
/// are dead after a restart of the server.
///
/// Under load no connection is idle for so long, so the test costs a round trip only when there is
/// time for it.
pub(super) const TRUSTED_IDLE: Duration = Duration::from_millis(100);

/// How many pings, one after another, fit into the timeout for acquiring a connection.
const TESTS: u32 = 5;

/// The timeout of a connection attempt. Without it, the driver would wait for ever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The last time when an open connection did not respond. Connections that have been idle since
/// before then are probably dead as well. Pings of all of them, one by one, would exceed the
/// timeout for acquiring a connection.
#[derive(Debug, Default)]
struct Silences(Mutex<Option<Instant>>);

impl Silences {
    fn add(&self, found: Instant) {
        *self.last() = Some(found);
    }

    /// Returns whether a connection that was last used at the given time has been idle since before
    /// the last failed test.
    fn include(&self, used: Option<Instant>) -> bool {
        let last = *self.last();
        last.zip(used).is_some_and(|(last, used)| used < last)
    }

    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        // The lock only guards an assignment, so a panic leaves no broken state.
        self.0.lock()
    }
}

impl PostgresStore {
    /// Creates the pool. Checks that the database can be reached, unless a migration has just run.
    pub(crate) async fn connect(
        url: &str,
        settings: &StoreSettings,
        contents: ContentRules,
    ) -> Result<Self, OpenError> {
        let options = parse(url)?;
        let ping_timeout = settings.acquire_timeout / TESTS;
        let silences = Arc::<Silences>::default();
        let pool = PgPoolOptions::new()
            .max_connections(settings.max_connections.max(1))
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let silences = Arc::clone(&silences);
                Box::pin(async move {
                    if meta.idle_for < TRUSTED_IDLE {
                        return Ok(true);
                    }
                    let now = Instant::now();
                    if silences.include(now.checked_sub(meta.idle_for)) {
                        return Ok(false);
                    }
                    match timeout(ping_timeout, connection.ping()).await {
                        Ok(answer) => Ok(answer.is_ok()),
                        Err(elapsed) => {
                            silences.add(now);
                            Err(sqlx::Error::Io(elapsed.into()))
                        }
                    }
                })
            })
            // A timed-out operation may still run on the connection, or never get a response. The
            // driver would wait for it, and the pool would lose a slot. If no operation has timed
            // out, the flush costs nothing.
            .after_release(move |connection, _| {
                Box::pin(async move { within(ping_timeout, connection.flush()).await.map(|()| true) })
            })
            .after_connect(|connection, _| Box::pin(prepare_connection(connection)));
        if !settings.migrate {
            find_out_whether_reachable(url, &options, settings.acquire_timeout).await?;
        }
        let committer = PostgresCommitter::new(options.clone(), ping_timeout);
        let pool = pool.connect_lazy_with(options);
        Ok(Self {
            wake_ups: Arc::new(QueueWakeUps::new(pool.clone())),
            pool,
            waiting_reads: FairShare::new(half_of(settings.max_connections)),
            progress_writes: Semaphore::new(half_of(settings.max_connections)),
            contents,
            committer,
            tasks: TaskTracker::new(),
            accepting: Arc::default(),
        })
    }
}

/// Connects without the pool, which would retry until its timeout and then report only the timeout.
async fn find_out_whether_reachable(
    url: &str,
    options: &PgConnectOptions,
    acquire_timeout: Duration,
) -> Result<(), OpenError> {
    match timeout(acquire_timeout, connect_alone(url)).await {
        Ok(connection) => {
            // The server responded, so an error of closing does not matter.
            drop(connection?.close().await);
            Ok(())
        }
        Err(elapsed) => Err(OpenError::Connect {
            database: database(options),
            source: elapsed.into(),
        }),
    }
}

/// Opens one connection outside of any pool.
pub(super) async fn connect_alone(url: &str) -> Result<PgConnection, OpenError> {
    let options = parse(url)?;
    let connected = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&options)).await;
    let connected = connected
        .map_err(Into::into)
        .and_then(|connected| connected.map_err(Into::into));
    connected.map_err(|source| OpenError::Connect {
        database: database(&options),
        source,
    })
}

/// Sets the options on which the store relies. An acknowledged commit survives a crash of the
/// server, even if the server's default is weaker. A statement that waited for a lock sees the
/// changes of the transaction it waited for. A stalled process releases its locks after ten seconds
/// in an open transaction. Statements are not compiled, since that takes longer than to run them.
/// Each statement uses an index. Otherwise a plan from when a table was small would read the whole
/// table, until the server analyzes it a minute later.
pub(super) async fn prepare_connection(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let statement = sqlx::query(
        "select set_config('default_transaction_isolation', 'read committed', false),
            set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false),
            set_config('idle_in_transaction_session_timeout',
                coalesce(nullif(current_setting('idle_in_transaction_session_timeout'), '0'), '10s'), false),
            set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false)",
    );
    connection.execute(statement.persistent(false)).await?;
    Ok(())
}

fn parse(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|source| OpenError::InvalidUrl { source: source.into() })?;
    let options = encrypted_beyond_this_machine(options, url);
    if options.get_application_name().is_some() {
        return Ok(options);
    }
    Ok(options.application_name("agent-runtime"))
}

/// Requires TLS for a server on another machine unless the URL says otherwise. The driver's default
/// would fall back to plain text if the server, or an attacker on the network, claims that there is
/// no TLS.
fn encrypted_beyond_this_machine(options: PgConnectOptions, url: &str) -> PgConnectOptions {
    let says_mode = ["sslmode=", "ssl-mode="].iter().any(|key| url.contains(key));
    let host = options.get_host();
    let is_here = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if says_mode || is_here || !matches!(options.get_ssl_mode(), PgSslMode::Prefer) {
        return options;
    }
    options.ssl_mode(PgSslMode::Require)
}

/// Returns the address of the database without the password.
fn database(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    format!(
        "postgres://{}@{}:{}/{name}",
        options.get_username(),
        options.get_host(),
        options.get_port()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_another_machine_is_asked_for_tls_unless_the_url_says_otherwise() {
        for (url, mode) in [
            ("postgres://a@db.internal/a", "require"),
            ("postgres://a@10.0.0.7:5432/a", "require"),
            ("postgres://a@db.internal/a?sslmode=disable", "disable"),
            ("postgres://a@db.internal/a?sslmode=prefer", "prefer"),
            ("postgres://a@db.internal/a?sslmode=verify-full", "verifyfull"),
            ("postgres://a@localhost/a", "prefer"),
            ("postgres://a@127.0.0.1/a", "prefer"),
            ("postgres://a@%2Fvar%2Frun%2Fpostgresql/a", "prefer"),
            ("postgres:///a?host=/var/run/postgresql", "prefer"),
        ] {
            let options = parse(url).unwrap();
            assert_eq!(format!("{:?}", options.get_ssl_mode()).to_lowercase(), mode, "{url}");
        }
    }
}
