//! Connecting to PostgreSQL.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::PostgresStore;
use super::signs::Listener;
use crate::store::open::{OpenError, StoreSettings};

/// A connection that was idle for longer is tested before it is used: after a restart of the server all that were open are dead.
///
/// Under load none is idle for so long, so the test costs a round trip only where there is time for it.
const TRUSTED_IDLE: Duration = Duration::from_millis(100);

/// How long a server that accepts a connection may say nothing; the driver would wait for ever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Connects, and finds out whether the database can be reached at all.
    pub(crate) async fn connect(url: &str, settings: &StoreSettings) -> Result<Self, OpenError> {
        let options = parse(url)?;
        let pool = PgPoolOptions::new()
            .max_connections(settings.max_connections.max(1))
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(meta.idle_for < TRUSTED_IDLE || connection.ping().await.is_ok()) })
            })
            .after_connect(|connection, _| Box::pin(prepare_connection(connection)));
        // The pool itself would go on trying until its time is up, and then tell of nothing else.
        match timeout(settings.acquire_timeout, connect_alone(url)).await {
            Ok(connection) => drop(connection?.close().await),
            Err(elapsed) => {
                return Err(OpenError::Connect {
                    place: place(&options),
                    source: elapsed.into(),
                });
            }
        }
        Ok(Self {
            pool: pool.connect_lazy_with(options),
            tasks: TaskTracker::new(),
            signs: Listener::default(),
        })
    }
}

/// Opens one connection outside any pool.
pub(super) async fn connect_alone(url: &str) -> Result<PgConnection, OpenError> {
    let options = parse(url)?;
    let connected = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&options)).await;
    let connected = connected
        .map_err(Into::into)
        .and_then(|connected| connected.map_err(Into::into));
    connected.map_err(|source| OpenError::Connect {
        place: place(&options),
        source,
    })
}

/// A commit that was answered must survive a crash of the server, whatever its defaults are; stronger settings stay. A statement that
/// has waited for a lock must see what it waited for.
async fn prepare_connection(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let statement = sqlx::query(
        "select set_config('default_transaction_isolation', 'read committed', false),
            set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)",
    );
    connection.execute(statement.persistent(false)).await?;
    Ok(())
}

fn parse(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|source| OpenError::InvalidUrl { source: source.into() })?;
    if options.get_application_name().is_some() {
        return Ok(options);
    }
    Ok(options.application_name("agent-runtime"))
}

/// Names the database without its password.
fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!(
        "postgres://{}@{}:{}/{database}",
        options.get_username(),
        options.get_host(),
        options.get_port()
    )
}
