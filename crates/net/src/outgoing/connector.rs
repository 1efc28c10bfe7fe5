//! Connections behind the guard, for a caller that speaks HTTP or TLS itself.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use url::Host;

use super::error::{OutgoingError, within};
use super::resolver::{GuardedResolver, NameResolver, NotPermitted};
use super::rules::AddressRules;
use super::target::{Target, UrlFault};

/// Connects to addresses that its rules permit.
#[derive(Debug, Clone)]
pub struct Connector {
    rules: Arc<AddressRules>,
    resolver: GuardedResolver,
    timeout: Duration,
}

impl Connector {
    /// Makes a connector. Resolving and connecting together may take as long as `timeout`.
    pub fn new(rules: AddressRules, timeout: Duration, resolver: Arc<dyn NameResolver>) -> Self {
        let rules = Arc::new(rules);
        let resolver = GuardedResolver {
            rules: Arc::clone(&rules),
            resolver,
        };
        Self {
            rules,
            resolver,
            timeout,
        }
    }

    /// Checks a URL as far as that is possible before its name is resolved.
    pub fn target(&self, url: &str) -> Result<Target, UrlFault> {
        Target::parse(url, &self.rules)
    }

    /// Resolves the host, and connects to the first of its permitted addresses that accepts.
    pub async fn connect(&self, target: &Target) -> Result<TcpStream, OutgoingError> {
        within(self.timeout, self.connect_in_time(target)).await
    }

    async fn connect_in_time(&self, target: &Target) -> Result<TcpStream, OutgoingError> {
        let unreachable = |error: &str| OutgoingError::Unreachable(error.into());
        let url = target.url();
        let port = url
            .port_or_known_default()
            .ok_or_else(|| unreachable("it has no port"))?;
        let addresses: Vec<IpAddr> = match url.host() {
            Some(Host::Domain(name)) => self.resolve(name).await?,
            // The target was checked.
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            None => Vec::new(),
        };
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for address in addresses {
            match TcpStream::connect((address, port)).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(OutgoingError::Unreachable(failed.into()))
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, OutgoingError> {
        let resolved = self.resolver.addresses(name.to_owned()).await;
        resolved.map_err(|error| {
            if error.is::<NotPermitted>() {
                OutgoingError::NotPublic
            } else {
                OutgoingError::Unreachable(error)
            }
        })
    }
}
