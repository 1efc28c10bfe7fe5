//! Opening the file.

use std::io;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqliteConnection};
use tokio_util::task::TaskTracker;

use super::SqliteStore;
use crate::store::driver_error::is_passing_error;
use crate::store::open::{OpenError, StoreSettings};
use crate::store::sql::waiting_reads;

/// How long a migration waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often, and after which pause, a file that is busy at once is tried again.
const BUSY_ATTEMPTS: usize = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

impl SqliteStore {
    /// Opens the file, and makes it and its folder where they are missing.
    pub(crate) async fn connect(url: &str, settings: &StoreSettings) -> Result<Self, OpenError> {
        // Waiting for another process that writes is waiting for one's turn, too.
        let options = parse(url)?.busy_timeout(settings.acquire_timeout);
        connect_writer(&options).await?;
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(writing(options.clone()));
        let readers = SqlitePoolOptions::new()
            .max_connections(settings.max_connections.max(1))
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .connect_lazy_with(options.read_only(true).create_if_missing(false));
        Ok(Self {
            readers,
            waiting_reads: waiting_reads(settings.max_connections),
            writer,
            tasks: TaskTracker::new(),
            signs: Arc::default(),
        })
    }
}

/// Reads the address of a file.
pub(super) fn parse(url: &str) -> Result<SqliteConnectOptions, OpenError> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(OpenError::InvalidUrl {
            source: "a store in memory would lose its sessions: name a file".into(),
        });
    }
    let options =
        SqliteConnectOptions::from_str(url).map_err(|source| OpenError::InvalidUrl { source: source.into() })?;
    if options.get_filename().as_os_str().is_empty() {
        return Err(OpenError::InvalidUrl {
            source: "the path is empty".into(),
        });
    }
    Ok(options.busy_timeout(BUSY_TIMEOUT))
}

/// Returns the file at the address if there is none.
pub(crate) fn missing_file(url: &str) -> Result<Option<PathBuf>, OpenError> {
    let options = parse(url)?;
    let path = options.get_filename();
    // What can't be looked at is told when it is opened.
    let is_missing = matches!(path.try_exists(), Ok(false));
    Ok(is_missing.then(|| path.to_owned()))
}

/// Makes what is missing and opens a connection that writes.
///
/// While another process turns the journal on, SQLite answers that the file is busy without waiting, so this waits.
pub(super) async fn connect_writer(options: &SqliteConnectOptions) -> Result<SqliteConnection, OpenError> {
    make_folder(options).await?;
    make_private_file(options).await?;
    let options = writing(options.clone());
    let connect = || SqliteConnection::connect_with(&options);
    let backoff = ConstantBuilder::default()
        .with_delay(BUSY_PAUSE)
        .with_max_times(BUSY_ATTEMPTS);
    let connected = connect.retry(backoff).when(is_passing_error).await;
    connected.map_err(|source| connect_error(&options, source))
}

/// Options of a connection that writes: a commit that was answered survives a loss of power.
fn writing(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

/// Makes the folder of the file.
async fn make_folder(options: &SqliteConnectOptions) -> Result<(), OpenError> {
    let Some(folder) = options.get_filename().parent() else {
        return Ok(());
    };
    tokio::fs::create_dir_all(folder)
        .await
        .map_err(|source| connect_error(options, source))
}

/// Makes the file where it is missing, readable and writable by its owner alone: it holds conversations and the hashes of API keys. SQLite
/// gives the files beside it, such as the write-ahead log, the same mode.
async fn make_private_file(options: &SqliteConnectOptions) -> Result<(), OpenError> {
    let made = tokio::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(options.get_filename())
        .await;
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(connect_error(options, error)),
        _ => Ok(()),
    }
}

/// Names the file in the error.
pub(super) fn connect_error(
    options: &SqliteConnectOptions,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::Connect {
        place: format!("sqlite://{}", options.get_filename().display()),
        source: source.into(),
    }
}
