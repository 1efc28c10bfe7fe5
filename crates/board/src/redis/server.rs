//! The server: how to connect to it, and how to send commands on a connection.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::{Client, Pipeline, RedisError, TlsCertificates, Value};
use tokio::time::timeout;

use super::keys::pulse;
use super::link_error::LinkError;
use crate::error::BoardError;

/// The address of the server, and how to connect to it.
pub(super) struct Server {
    client: Client,
    timeout: Duration,
}

impl Server {
    /// Reads a URL, and the certificate authorities (PEM) to trust instead of the public ones. An
    /// error does not contain the URL, since it may contain a password.
    pub(super) fn new(url: &str, ca: Option<&[u8]>, timeout: Duration) -> Result<Self, BoardError> {
        let certificates = ca.map(|ca| TlsCertificates {
            client_tls: None,
            root_cert: Some(ca.to_vec()),
        });
        let client = match certificates {
            Some(certificates) => Client::build_with_tls(url, certificates),
            None => Client::open(url),
        };
        let client = client.map_err(|error| BoardError {
            operation: "prepare its connections",
            source: error.into(),
        })?;
        Ok(Self { client, timeout })
    }

    /// Connects, and checks that the server accepts writes. Takes several round trips, so it may
    /// take a multiple of the timeout.
    pub(super) async fn connect(&self) -> Result<ConnectionManager, LinkError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_number_of_retries(1);
        let mut connection = ConnectionManager::new_lazy_with_config(self.client.clone(), config)?;
        timeout(self.timeout * 2, pulse().exec_async(&mut connection)).await??;
        Ok(connection)
    }

    /// Opens a connection that subscribes to channels.
    pub(super) async fn subscribe(&self, channels: &[&str]) -> Result<PubSub, LinkError> {
        let subscribing = async {
            let mut subscription = self.client.get_async_pubsub().await?;
            subscription.subscribe(channels).await?;
            Ok::<_, RedisError>(subscription)
        };
        Ok(timeout(self.timeout * 2, subscribing).await??)
    }
}

/// Sends commands, and returns a reply to each.
pub(super) async fn send(connection: &mut ConnectionManager, request: &Pipeline) -> Result<Vec<Value>, RedisError> {
    match request.query_async(connection).await {
        // The server may have closed an idle connection, which is no outage. All commands may be
        // repeated.
        Err(error) if error.is_unrecoverable_error() => request.query_async(connection).await,
        replies => replies,
    }
}
