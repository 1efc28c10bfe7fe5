//! The link to the server: each request has a time limit, and an outage is noticed, told once and not waited for again.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, FromRedisValue, Pipeline, RedisError, pipe};
use tokio::sync::Notify;
use tokio::time::{error::Elapsed, timeout};

use crate::board::BoardError;

/// Sends requests to the server while it is there.
pub(super) struct Link {
    client: Client,
    timeout: Duration,
    connection: Mutex<ConnectionManager>,
    /// Even while the server is there, odd in an outage; it only grows.
    epoch: AtomicU64,
    /// Told of the beginning of an outage.
    lost: Arc<Notify>,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the server did not answer in time")]
    Timeout(#[from] Elapsed),
    #[error("the request failed")]
    Request(#[from] RedisError),
    #[error("the server is known to be away")]
    Away,
}

impl Link {
    /// Prepares a link; nothing is sent yet.
    pub(super) fn new(url: &str, timeout: Duration, lost: Arc<Notify>) -> Result<Self, BoardError> {
        let unusable = |source: RedisError| BoardError {
            operation: "read its URL",
            source: source.into(),
        };
        let client = Client::open(url).map_err(unusable)?;
        let connection = Mutex::new(manager(&client, timeout).map_err(unusable)?);
        Ok(Self {
            client,
            timeout,
            connection,
            epoch: AtomicU64::new(0),
            lost,
        })
    }

    /// Returns the number of outages begun and ended, by which [`Link::lose`] tells an old failure from a new one.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Tells whether there is an outage.
    pub(super) fn is_lost(&self) -> bool {
        is_outage(self.epoch())
    }

    /// Sends a request. Fails at once in an outage; a failure begins one.
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

    /// Sends a request even in an outage, whose end it may prove.
    pub(super) async fn attempt<T: FromRedisValue>(&self, request: &Pipeline) -> Result<T, LinkError> {
        let mut connection = self.connection().clone();
        Ok(timeout(self.timeout, async {
            match request.query_async(&mut connection).await {
                // An idle connection that the server has closed is no outage. All requests may be sent twice.
                Err(error) if error.is_unrecoverable_error() => request.query_async(&mut connection).await,
                answer => answer,
            }
        })
        .await??)
    }

    /// Replaces the connection if the server answers on a new one: an old one may hang without an error.
    pub(super) async fn reconnect(&self) -> Result<(), LinkError> {
        let mut connection = manager(&self.client, self.timeout)?;
        // Twice the time, since connecting takes several round trips and nobody waits.
        timeout(self.timeout * 2, pipe().cmd("PING").exec_async(&mut connection)).await??;
        *self.connection() = connection;
        Ok(())
    }

    /// Begins an outage, if requests failed that began before it.
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
            tracing::info!("the shared board is back");
        }
    }

    fn connection(&self) -> MutexGuard<'_, ConnectionManager> {
        // The only change is an assignment.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client would show where the server is, and with which name one logs in.
        f.debug_struct("Link")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

fn is_outage(epoch: u64) -> bool {
    epoch % 2 == 1
}

fn manager(client: &Client, timeout: Duration) -> Result<ConnectionManager, RedisError> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout))
        .set_number_of_retries(1);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}
