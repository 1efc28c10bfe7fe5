//! Connects to PostgreSQL.

use std::error::Error;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use secrecy::ExposeSecret as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::PostgresStore;
use super::committer::PostgresCommitter;
use super::own_connection::OwnConnection;
use super::server_settings::Pooler;
use super::statistics::Statistics;
use super::timeouts::{TRUSTED_IDLE, within};
use super::wake_ups::QueueWakeUps;
use crate::content_rules::ContentRules;
use crate::open_error::OpenError;
use crate::sql::half_of;
use crate::store_settings::StoreSettings;
use tasks::fair_share::FairShare;
use tasks::keyed::Turns;

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
    /// Creates the pool. Checks that the database can be reached, unless a migration has just run,
    /// and that the connections of a pooler have the settings of the store.
    pub(crate) async fn connect(
        url: &str,
        settings: &StoreSettings,
        contents: ContentRules,
    ) -> Result<Self, OpenError> {
        let options = parse(url)?;
        let pooler = match settings.listen_url {
            None => Pooler::Absent,
            Some(_) => Pooler::Present,
        };
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
            .after_connect(move |connection, _| Box::pin(pooler.prepare(connection)));
        // A migration has just written.
        let mut is_standby = false;
        if !settings.migrate || pooler == Pooler::Present {
            is_standby = try_to_connect(&options, pooler, settings.acquire_timeout).await?;
        }
        let listen_options = settings.listen_url.as_ref().map(|url| parse(url.expose_secret()));
        let listen_options = listen_options.transpose()?.unwrap_or_else(|| options.clone());
        let own_connection = OwnConnection::new(options.clone(), pooler, ping_timeout);
        let pool = pool.connect_lazy_with(options);
        let statistics = Statistics::new(pool.clone());
        Ok(Self {
            wake_ups: Arc::new(QueueWakeUps::new(pool.clone(), listen_options)),
            pool,
            is_standby: AtomicBool::new(is_standby),
            waiting_reads: FairShare::new(half_of(settings.max_connections)),
            progress_writes: Semaphore::new(half_of(settings.max_connections)),
            contents,
            committer: PostgresCommitter::new(own_connection, statistics, settings.observer.clone()),
            tasks: TaskTracker::new(),
            accepting: Turns::default(),
        })
    }
}

/// Connects without the pool, which would retry until its timeout and then report only the timeout.
/// Returns whether the database takes no writes.
async fn try_to_connect(
    options: &PgConnectOptions,
    pooler: Pooler,
    acquire_timeout: Duration,
) -> Result<bool, OpenError> {
    let tried = timeout(acquire_timeout, async {
        let mut connection = connect_with(options).await?;
        let prepared = match pooler.prepare(&mut connection).await {
            Ok(()) => is_read_only(&mut connection).await,
            Err(error) => Err(error),
        };
        // The server responded, so an error of closing does not matter.
        drop(connection.close().await);
        prepared.map_err(|error| no_connection(options, error))
    });
    tried
        .await
        .unwrap_or_else(|elapsed| Err(no_connection(options, elapsed)))
}

async fn is_read_only(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::raw_sql("select current_setting('transaction_read_only') = 'on'");
    row.fetch_one(connection).await?.try_get(0)
}

/// Opens one connection outside of any pool.
pub(super) async fn connect_alone(url: &str) -> Result<PgConnection, OpenError> {
    connect_with(&parse(url)?).await
}

async fn connect_with(options: &PgConnectOptions) -> Result<PgConnection, OpenError> {
    let connected = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await;
    let connected = connected.map_err(|elapsed| no_connection(options, elapsed))?;
    connected.map_err(|error| no_connection(options, error))
}

fn no_connection(options: &PgConnectOptions, source: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
    OpenError::Connect {
        database: database(options),
        source: source.into(),
    }
}

fn parse(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|source| OpenError::InvalidUrl { source: source.into() })?;
    // The pooler PgBouncer refuses parameters that it does not know. Floats are sent as bytes.
    let options = encrypted_beyond_this_machine(options, url).extra_float_digits(None);
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
