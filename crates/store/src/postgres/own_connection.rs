//! A connection outside of the pool, for one user at a time. It connects when it is first needed,
//! and again after it failed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;

use super::server_settings::{BATCH_SETTINGS, Pooler};
use super::timeouts::{TRUSTED_IDLE, within};

/// The connection of the committer.
#[derive(Debug)]
pub(super) struct OwnConnection {
    options: PgConnectOptions,
    pub(super) pooler: Pooler,
    /// How long to wait for a connection, or for a response to a ping.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The connection, with the time when it was last used.
    idle: Option<(PgConnection, Instant)>,
    is_closed: bool,
}

impl OwnConnection {
    /// Creates a connection that is not open yet.
    pub(super) fn new(options: PgConnectOptions, pooler: Pooler, patience: Duration) -> Self {
        Self {
            options,
            pooler,
            patience,
            state: Mutex::default(),
        }
    }

    /// Takes the connection for a batch, or connects. Tests a connection that was idle for a while,
    /// since it may be dead after a restart of the server.
    pub(super) async fn take(&self) -> Result<PgConnection, sqlx::Error> {
        let idle = {
            let mut state = self.state.lock();
            if state.is_closed {
                return Err(sqlx::Error::PoolClosed);
            }
            state.idle.take()
        };
        if let Some((mut connection, since)) = idle
            && (since.elapsed() < TRUSTED_IDLE || within(self.patience, connection.ping()).await.is_ok())
        {
            return Ok(connection);
        }
        within(self.patience, self.connect()).await
    }

    /// Gives the connection back, unless it failed.
    pub(super) fn put_back(&self, connection: PgConnection) {
        self.state.lock().idle = Some((connection, Instant::now()));
    }

    /// Closes the connection. There is no other one afterwards.
    pub(super) async fn close(&self) {
        let idle = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.idle.take()
        };
        if let Some((connection, _)) = idle {
            // The server also notices a connection that is closed without a message.
            let _ = timeout(self.patience, connection.close()).await;
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.options).await?;
        self.pooler.prepare(&mut connection).await?;
        if self.pooler == Pooler::Absent {
            sqlx::raw_sql(BATCH_SETTINGS).execute(&mut connection).await?;
        }
        Ok(connection)
    }
}
