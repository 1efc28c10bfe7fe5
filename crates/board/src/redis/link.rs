//! The link to the server. Bounds each request by a timeout, logs an outage once, and fails fast
//! during it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, PubSub};
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, Value, from_redis_value};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::keys::pulse;
use super::link_error::LinkError;
use super::server::{self, Server};

/// Sends requests to the server while it can be reached.
pub(super) struct Link {
    server: Server,
    timeout: Duration,
    /// `None` until the first reply of the server.
    connection: Mutex<Option<ConnectionManager>>,
    /// Even while the server can be reached, odd in an outage. It only grows.
    epoch: AtomicU64,
    /// Notified when an outage begins.
    lost: Arc<Notify>,
    /// Notified when an outage ends.
    restored: Notify,
}

impl Link {
    /// Creates a link. Sends nothing yet.
    pub(super) fn new(server: Server, timeout: Duration, lost: Arc<Notify>) -> Self {
        Self {
            server,
            timeout,
            connection: Mutex::default(),
            epoch: AtomicU64::new(0),
            lost,
            restored: Notify::new(),
        }
    }

    /// Returns the number of begun and ended outages. [`Link::lose`] needs it to distinguish an old
    /// failure from a new one.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns the number of begun outages.
    pub(super) fn outages(&self) -> u64 {
        self.epoch().div_ceil(2)
    }

    /// Waits for the end of an outage. Only one caller may wait at a time.
    pub(super) async fn restored(&self) {
        self.restored.notified().await;
    }

    /// Returns whether there is an outage.
    pub(super) fn is_lost(&self) -> bool {
        is_outage(self.epoch())
    }

    /// Sends one command. Fails at once in an outage. A failure begins an outage.
    pub(super) async fn send_one<T: FromRedisValue>(&self, command: Cmd) -> Result<T, LinkError> {
        let (reply,): (T,) = self.send(redis::pipe().add_command(command)).await?;
        Ok(reply)
    }

    /// Sends several commands, as [`send_one`](Self::send_one). The value is made of the replies to
    /// all of them.
    pub(super) async fn send<T: FromRedisValue>(&self, request: &Pipeline) -> Result<T, LinkError> {
        let epoch = self.epoch();
        if is_outage(epoch) {
            return Err(LinkError::Away);
        }
        let answer = self.attempt(request).await;
        if let Err(error) = &answer {
            self.lose(epoch, error);
        }
        answer
    }

    /// Sends several commands even in an outage, to detect its end. The value is made of the
    /// replies to all of them.
    pub(super) async fn attempt<T: FromRedisValue>(&self, request: &Pipeline) -> Result<T, LinkError> {
        let mut connection = self.connection.lock().clone().ok_or(LinkError::Away)?;
        let answers = timeout(self.timeout, server::send(&mut connection, request)).await??;
        Ok(from_redis_value(Value::Array(answers)).map_err(RedisError::from)?)
    }

    /// Checks that the server can be reached and accepts writes. If not, begins an outage.
    pub(super) async fn pulse(&self) -> Result<(), LinkError> {
        self.send_one(pulse()).await
    }

    /// Replaces the connection if the server responds on a new one. The old one may hang without an
    /// error, or lead to a server that is no longer the right one.
    pub(super) async fn reconnect(&self) -> Result<(), LinkError> {
        let connection = self.server.connect().await?;
        *self.connection.lock() = Some(connection);
        Ok(())
    }

    /// Opens a separate connection that subscribes to channels. Requests never wait for it.
    pub(super) async fn subscribe(&self, channels: &[&str]) -> Result<PubSub, LinkError> {
        self.server.subscribe(channels).await
    }

    /// Returns how long a request may wait.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Begins an outage, unless the failed request began before an earlier outage.
    pub(super) fn lose(&self, epoch: u64, error: &LinkError) {
        let begun = self
            .epoch
            .compare_exchange(epoch, epoch | 1, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_ok() && !is_outage(epoch) {
            tracing::warn!(
                error = error as &dyn Error,
                "the shared board is away; live runs of other replicas are not seen"
            );
            self.lost.notify_one();
        }
    }

    /// Ends the outage.
    pub(super) fn restore(&self) {
        if self.is_lost() {
            self.epoch.fetch_add(1, Ordering::AcqRel);
            self.restored.notify_one();
            tracing::info!("the shared board is back");
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the client, which would show the address and the user name.
        f.debug_struct("Link")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

fn is_outage(epoch: u64) -> bool {
    epoch % 2 == 1
}
