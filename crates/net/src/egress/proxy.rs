//! Accepts the connections of one command, within the limits of that command.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::authority::AuthorityError;
use super::connection;
use super::gateway::Gateway;
use super::intercept::Interceptor;
use super::limits::EgressLimits;
use super::metered::{Allowance, Metered};
use super::secret::HostSecret;
use crate::outgoing::{AddressRules, Connector, NameResolver};

/// The pause after a connection that could not be accepted, for example without free files.
const PAUSE: Duration = Duration::from_millis(50);

/// The proxy of all commands.
#[derive(Debug)]
pub struct EgressProxy {
    gateway: Arc<Gateway>,
}

/// The ports of the proxy.
#[derive(Debug)]
pub struct EgressPorts {
    /// Resolves the names of hosts.
    pub resolver: Arc<dyn NameResolver>,
    /// How the proxy itself speaks TLS, with the hosts that have a secret.
    pub tls: ClientConfig,
}

impl EgressProxy {
    /// Makes a proxy that connects as the rules permit.
    pub fn new(
        rules: AddressRules,
        limits: EgressLimits,
        secrets: Vec<HostSecret>,
        ports: EgressPorts,
    ) -> Result<Arc<Self>, AuthorityError> {
        let interceptor = if secrets.is_empty() {
            None
        } else {
            Some(Interceptor::new(secrets, ports.tls)?)
        };
        let gateway = Gateway {
            connector: Connector::new(rules, limits.connect_timeout, ports.resolver),
            limits,
            interceptor,
        };
        Ok(Arc::new(Self {
            gateway: Arc::new(gateway),
        }))
    }

    /// Returns the secrets that the proxy adds.
    pub fn secrets(&self) -> &[HostSecret] {
        self.gateway.interceptor.as_ref().map_or(&[], Interceptor::secrets)
    }

    /// Returns the certificate of an authority that commands must trust, as PEM; `None` if there
    /// are no secrets.
    pub fn certificate(&self) -> Option<&str> {
        self.gateway.interceptor.as_ref().map(Interceptor::certificate)
    }

    /// Serves the one command that can reach the listener. Does not end by itself. Dropping the
    /// future closes all connections.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let limits = self.gateway.limits;
        let slots = Arc::new(Semaphore::new(limits.connections));
        let allowance = Arc::new(Allowance::new(limits.bytes));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            if allowance.is_spent() {
                continue;
            }
            let stream = Metered::new(stream, Arc::clone(&allowance), limits.idle_timeout);
            let gateway = Arc::clone(&self.gateway);
            connections.spawn(async move {
                let _slot = slot;
                let _ = timeout(limits.connection_time, connection::serve(gateway, stream)).await;
            });
        }
    }
}
