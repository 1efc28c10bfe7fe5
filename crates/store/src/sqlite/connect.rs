//! Opens the database file.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::Semaphore;

use super::SqliteStore;
use super::file::StoreFile;
use super::writer::SqliteWriter;
use crate::content_rules::ContentRules;
use crate::driver_error::is_busy;
use crate::open_error::OpenError;
use crate::sql::half_of;
use crate::store_settings::StoreSettings;
use crate::wake_ups::CommandWakeUps;
use tasks::fair_share::FairShare;

/// How long a migration waits for another process to finish its write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to retry a file that is busy without a wait, and the pause between the attempts.
const BUSY_ATTEMPTS: usize = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// The permissions of users who are neither the owner of a file nor in its group.
const OTHERS: u32 = 0o007;

impl SqliteStore {
    /// Opens the file. Creates the file and its folder if they are missing.
    pub(crate) async fn connect(
        url: &str,
        settings: &StoreSettings,
        contents: ContentRules,
    ) -> Result<Self, OpenError> {
        // A write of another process occupies the writer as well, so the same timeout applies.
        let options = parse(url)?.busy_timeout(settings.acquire_timeout);
        close_to_others(&options).await;
        connect_writer(&options).await?;
        let file = options.get_filename().to_path_buf();
        let file = StoreFile::at(file).map_err(|source| connect_error(&options, source))?;
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
        let wake_ups = Arc::default();
        Ok(Self {
            file,
            readers,
            waiting_reads: FairShare::new(half_of(settings.max_connections)),
            progress_writes: Semaphore::new(half_of(settings.max_connections)),
            contents,
            writer: SqliteWriter::new(writer, Arc::clone(&wake_ups), settings.observer.clone()),
            wake_ups,
            command_wake_ups: CommandWakeUps::default(),
        })
    }
}

/// Parses the address of a file.
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

/// Returns the path at the address if no file exists there.
pub(crate) fn missing_file(url: &str) -> Result<Option<PathBuf>, OpenError> {
    let options = parse(url)?;
    let path = options.get_filename();
    // Other errors are reported when the file is opened.
    let is_missing = matches!(path.try_exists(), Ok(false));
    Ok(is_missing.then(|| path.to_owned()))
}

/// Creates the file and its folder if they are missing, and opens a connection that writes.
///
/// While another process turns on the write-ahead log, SQLite reports a busy file without a wait.
/// So this function waits and retries.
pub(super) async fn connect_writer(options: &SqliteConnectOptions) -> Result<SqliteConnection, OpenError> {
    make_folder(options).await?;
    make_private_file(options).await?;
    let options = writing(options.clone());
    let connect = || SqliteConnection::connect_with(&options);
    let backoff = ConstantBuilder::default()
        .with_delay(BUSY_PAUSE)
        .with_max_times(BUSY_ATTEMPTS);
    let connected = connect.retry(backoff).when(is_busy).await;
    connected.map_err(|source| connect_error(&options, source))
}

/// Returns the options of a connection that writes. An acknowledged commit survives a power loss.
fn writing(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

/// Creates the folder of the file.
async fn make_folder(options: &SqliteConnectOptions) -> Result<(), OpenError> {
    let Some(folder) = options.get_filename().parent() else {
        return Ok(());
    };
    tokio::fs::create_dir_all(folder)
        .await
        .map_err(|source| connect_error(options, source))
}

/// Creates the file if it is missing. Only its owner may read and write it, since it contains
/// conversations and the hashes of API keys. SQLite gives the other files, such as the write-ahead
/// log, the same mode.
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

/// Removes the permissions of other users from files that exist already. The permissions of the
/// group stay, since an operator may have granted them.
async fn close_to_others(options: &SqliteConnectOptions) {
    for suffix in ["", "-wal", "-shm"] {
        let mut path = options.get_filename().as_os_str().to_owned();
        path.push(suffix);
        let path = Path::new(&path);
        match close_file_to_others(path).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => tracing::warn!(
                path = %path.display(),
                error = &error as &dyn std::error::Error,
                "other users of this machine may have access to a file of the store"
            ),
            _ => (),
        }
    }
}

async fn close_file_to_others(path: &Path) -> io::Result<()> {
    let metadata = tokio::fs::metadata(path).await?;
    let mode = metadata.permissions().mode();
    if mode & OTHERS == 0 || !metadata.is_file() {
        return Ok(());
    }
    tokio::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)).await
}

/// Returns an error that names the file.
pub(super) fn connect_error(
    options: &SqliteConnectOptions,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::Connect {
        database: format!("sqlite://{}", options.get_filename().display()),
        source: source.into(),
    }
}
