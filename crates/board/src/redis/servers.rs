//! The kinds of servers: a single one, one behind Sentinels, or a cluster. No other file knows the
//! difference.

use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{Client, ConnectionInfo, Pipeline, RedisError, TlsCertificates, TlsMode, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::address::{Address, AddressError};
use super::link_error::LinkError;
use super::request::Request;
use crate::error::BoardError;

/// The address of the servers, and how to connect.
pub(super) struct Servers {
    kind: Kind,
    timeout: Duration,
}

enum Kind {
    One(Box<Client>),
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster {
        cluster: Box<ClusterClient>,
        nodes: Vec<Client>,
    },
}

/// A connection for requests. Clones share it.
#[derive(Clone)]
pub(super) enum Connection {
    One(ConnectionManager),
    Cluster(ClusterConnection),
}

impl Servers {
    /// Parses a URL and the certificate authorities (PEM) to trust instead of the public ones.
    pub(super) fn new(url: &str, ca: Option<&[u8]>, timeout: Duration) -> Result<Self, BoardError> {
        let address = Address::parse(url).map_err(|error: AddressError| BoardError {
            operation: "read its URL",
            source: error.into(),
        })?;
        let certificates = ca.map(|ca| TlsCertificates {
            client_tls: None,
            root_cert: Some(ca.to_vec()),
        });
        let kind = Kind::new(address, certificates, timeout).map_err(|error| BoardError {
            operation: "prepare its connections",
            source: error.into(),
        })?;
        Ok(Self { kind, timeout })
    }

    /// Connects, and checks that the server responds. Takes several round trips, so it may take a
    /// multiple of the timeout.
    pub(super) async fn connect(&self) -> Result<Connection, LinkError> {
        let mut connection = match &self.kind {
            Kind::One(client) => self.connect_one(client)?,
            Kind::Sentinel(sentinel) => self.connect_one(&self.master(sentinel).await?)?,
            Kind::Cluster { cluster, .. } => {
                let connecting = cluster.get_async_connection();
                Connection::Cluster(timeout(self.timeout * 2, connecting).await??)
            }
        };
        timeout(self.timeout * 2, connection.ping()).await??;
        Ok(connection)
    }

    /// Opens a connection that subscribes to channels.
    pub(super) async fn subscribe(&self, channels: &[&str]) -> Result<PubSub, LinkError> {
        match &self.kind {
            Kind::One(client) => self.subscribe_one(client, channels).await,
            Kind::Sentinel(sentinel) => self.subscribe_one(&self.master(sentinel).await?, channels).await,
            Kind::Cluster { nodes, .. } => {
                let mut subscribed = Err(LinkError::Away);
                // Each node forwards the publications of all nodes.
                for node in nodes {
                    subscribed = self.subscribe_one(node, channels).await;
                    if subscribed.is_ok() {
                        break;
                    }
                }
                subscribed
            }
        }
    }

    /// Returns the request that checks that the server can be reached and is still the right one.
    pub(super) fn pulse(&self) -> Request {
        let mut pulse = Request::default();
        // A server that Sentinels have replaced reports the role of a replica, to which other
        // processes do not subscribe.
        let is_named = matches!(self.kind, Kind::Sentinel(_));
        pulse.publish(redis::cmd(if is_named { "ROLE" } else { "PING" }));
        pulse
    }

    /// Returns whether the reply to a publication counts all subscribers.
    pub(super) fn counts_subscribers(&self) -> bool {
        !matches!(self.kind, Kind::Cluster { .. })
    }

    async fn master(&self, sentinel: &Mutex<SentinelClient>) -> Result<Client, LinkError> {
        let master = async { sentinel.lock().await.async_get_client().await };
        Ok(timeout(self.timeout * 2, master).await??)
    }

    fn connect_one(&self, client: &Client) -> Result<Connection, RedisError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_number_of_retries(1);
        ConnectionManager::new_lazy_with_config(client.clone(), config).map(Connection::One)
    }

    async fn subscribe_one(&self, client: &Client, channels: &[&str]) -> Result<PubSub, LinkError> {
        let subscribing = async {
            let mut subscription = client.get_async_pubsub().await?;
            subscription.subscribe(channels).await?;
            Ok::<_, RedisError>(subscription)
        };
        Ok(timeout(self.timeout * 2, subscribing).await??)
    }
}

impl Kind {
    fn new(address: Address, certificates: Option<TlsCertificates>, timeout: Duration) -> Result<Self, RedisError> {
        match address {
            Address::One(server) => Ok(Self::One(Box::new(client(server, certificates.as_ref())?))),
            Address::Sentinel {
                sentinels,
                master,
                server,
            } => {
                let client = sentinel_client(&sentinels, &master, &server, certificates)?;
                Ok(Self::Sentinel(Box::new(Mutex::new(client))))
            }
            Address::Cluster(nodes) => {
                let cluster = ClusterClient::builder(nodes.clone())
                    .connection_timeout(timeout)
                    .response_timeout(timeout)
                    .retries(2);
                let cluster = match &certificates {
                    Some(certificates) => cluster.certs(certificates.clone()),
                    None => cluster,
                };
                let nodes = nodes.into_iter().map(|node| client(node, certificates.as_ref()));
                Ok(Self::Cluster {
                    cluster: Box::new(cluster.build()?),
                    nodes: nodes.collect::<Result<_, _>>()?,
                })
            }
        }
    }
}

fn client(server: ConnectionInfo, certificates: Option<&TlsCertificates>) -> Result<Client, RedisError> {
    match certificates {
        Some(certificates) => Client::build_with_tls(server, certificates.clone()),
        None => Client::open(server),
    }
}

fn sentinel_client(
    sentinels: &[ConnectionInfo],
    master: &str,
    server: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
) -> Result<SentinelClient, RedisError> {
    let hosts = sentinels.iter().map(|sentinel| sentinel.addr().clone());
    let mut builder = SentinelClientBuilder::new(hosts, master, SentinelServerType::Master)?;
    let login = server.redis_settings();
    builder = builder.set_client_to_redis_db(login.db());
    if let Some(username) = login.username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = login.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(login) = sentinels.first().map(ConnectionInfo::redis_settings) {
        if let Some(username) = login.username() {
            builder = builder.set_client_to_sentinel_username(username);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_sentinel_password(password);
        }
    }
    if matches!(server.addr(), redis::ConnectionAddr::TcpTls { .. }) {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some(certificates) = certificates {
        builder = builder
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_certificates(certificates);
    }
    builder.build()
}

impl Connection {
    /// Sends a request, and returns a reply to each command. Commands of one tenant are executed in
    /// their order. Commands without a tenant come last.
    pub(super) async fn send(&mut self, request: &Request) -> Result<Vec<Value>, RedisError> {
        match self {
            Self::One(connection) => {
                let pipeline = request.pipeline();
                match pipeline.query_async(connection).await {
                    // The server may have closed an idle connection, which is no outage. All
                    // requests may be repeated.
                    Err(error) if error.is_unrecoverable_error() => pipeline.query_async(connection).await,
                    answers => answers,
                }
            }
            Self::Cluster(connection) => send_by_slot(connection, request).await,
        }
    }

    async fn ping(&mut self) -> Result<(), RedisError> {
        let ping = redis::cmd("PING");
        match self {
            Self::One(connection) => ping.exec_async(connection).await,
            Self::Cluster(connection) => ping.exec_async(connection).await,
        }
    }
}

/// Sends each tenant's commands to the node that has its keys.
async fn send_by_slot(connection: &ClusterConnection, request: &Request) -> Result<Vec<Value>, RedisError> {
    let send = |pipeline: Pipeline, positions: Vec<usize>| async move {
        let answers: Vec<Value> = pipeline.query_async(&mut connection.clone()).await?;
        Ok::<_, RedisError>(positions.into_iter().zip(answers))
    };
    let (of_tenants, of_none) = request.by_slot();
    let mut answers = vec![Value::Nil; request.len()];
    let of_tenants = of_tenants
        .into_iter()
        .map(|(pipeline, positions)| send(pipeline, positions));
    for (position, answer) in try_join_all(of_tenants).await?.into_iter().flatten() {
        answers[position] = answer;
    }
    if let Some((pipeline, positions)) = of_none {
        for (position, answer) in send(pipeline, positions).await? {
            answers[position] = answer;
        }
    }
    Ok(answers)
}
