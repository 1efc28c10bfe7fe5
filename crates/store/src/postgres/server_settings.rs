//! The settings of connections at the server, on which the store relies.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

/// The settings on which the store relies. An acknowledged commit survives a crash of the server,
/// even if the server's default is weaker. A statement that waited for a lock sees the changes of
/// the transaction it waited for. A stalled process releases its locks after ten seconds in an open
/// transaction. Statements are not compiled, since that takes longer than to run them. Each
/// statement uses an index. Otherwise a plan from when a table was small would read the whole
/// table, until the server analyzes it a minute later.
macro_rules! settings {
    ($columns:literal) => {
        concat!(
            "select ",
            $columns,
            " from (values ('default_transaction_isolation', 'read committed'),
                ('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')),
                ('idle_in_transaction_session_timeout',
                    coalesce(nullif(current_setting('idle_in_transaction_session_timeout'), '0'), '10s')),
                ('jit', 'off'), ('enable_seqscan', 'off')
            ) wanted (name, value) where current_setting(name) <> value"
        )
    };
}

/// Changes the settings of a connection, and marks it. The first row has the mark that was there
/// before.
const CHANGE_SETTINGS: &str = concat!(
    "select current_setting('agent_runtime.prepared', true) mark, set_config('agent_runtime.prepared', 'yes', false); ",
    settings!("set_config(name, value, false)")
);
/// Returns the settings that a connection lacks.
const MISSING_SETTINGS: &str = settings!("name, value");

/// Whether a pooler in transaction mode is between this process and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooler {
    /// There is none. The process changes the settings of its connections.
    Absent,
    /// There is one. Each transaction may have another connection to the server, so all of these
    /// must have the settings from their beginning.
    Present,
}

impl Pooler {
    /// Changes or checks the settings of a new connection. Uses no prepared statement, since the
    /// next message may reach another connection to the server.
    pub(super) async fn prepare(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        match self {
            Self::Absent => change_settings(connection).await,
            Self::Present => check_settings(connection).await,
        }
    }
}

async fn change_settings(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let rows = sqlx::raw_sql(CHANGE_SETTINGS).fetch_all(connection).await?;
    let mark: Option<String> = rows.first().map(|row| row.try_get("mark")).transpose()?.flatten();
    if mark.is_some_and(|mark| !mark.is_empty()) && !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!("a pooler shares the connections of store.url: set store.listen_url, or let it pool sessions");
    }
    Ok(())
}

async fn check_settings(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let missing = sqlx::raw_sql(MISSING_SETTINGS).fetch_all(connection).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let setting = |row: &PgRow| {
        Ok(format!(
            "{} = '{}'",
            row.try_get::<&str, _>(0)?,
            row.try_get::<&str, _>(1)?
        ))
    };
    let missing = missing.iter().map(setting).collect::<Result<_, sqlx::Error>>()?;
    Err(sqlx::Error::Configuration(MissingSettings(missing).into()))
}

/// The connections of a pooler lack these settings.
#[derive(Debug, thiserror::Error)]
#[error(
    "the sessions behind store.url lack settings; run `alter role ROLE set SETTING` for each of {}, and reconnect the pooler",
    .0.join(", ")
)]
struct MissingSettings(Vec<String>);

/// The settings of a connection that executes batches, each as `SET NAME = VALUE`: how their
/// statements are planned, and how long they wait for a lock.
///
/// The statements have arrays as parameters. The server would plan them anew each time, for the
/// lengths of the arrays, although they always use the same indexes. It joins the arrays to tables
/// row by row: any other join would read a whole index once the table has grown.
macro_rules! plan_settings {
    ($set:literal) => {
        concat!(
            $set,
            " plan_cache_mode = 'force_generic_plan'; ",
            $set,
            " enable_hashjoin = 'off'; ",
            $set,
            " enable_mergejoin = 'off'"
        )
    };
}

/// A batch that waits for a lock holds up all of its writes, so it soon gives up.
macro_rules! batch_settings {
    ($set:literal) => {
        concat!($set, " lock_timeout = '100ms'; ", plan_settings!($set))
    };
}

/// Sets them for a connection.
pub(super) const BATCH_SETTINGS: &str = batch_settings!("set");
/// Sets them for one transaction, behind a pooler.
pub(super) const LOCAL_BATCH_SETTINGS: &str = batch_settings!("set local");
/// Sets the settings of plans for one transaction.
pub(super) const LOCAL_PLAN_SETTINGS: &str = plan_settings!("set local");
