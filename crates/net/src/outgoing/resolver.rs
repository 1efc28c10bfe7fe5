//! Resolves names to permitted addresses.
//!
//! The connection uses exactly these addresses. So an attack with a name that soon resolves
//! differently fails.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::rules::AddressRules;

/// The error if all addresses of a name are forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no address of the name may be connected to")]
pub(super) struct NotPermitted;

/// Resolves names to addresses, without any checks.
pub trait NameResolver: Send + Sync + fmt::Debug {
    /// Returns the addresses of a host.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Resolves names as the operating system does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // The port is unused.
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Drops the addresses that the rules do not permit.
#[derive(Debug, Clone)]
pub(super) struct GuardedResolver {
    pub(super) rules: Arc<AddressRules>,
    pub(super) resolver: Arc<dyn NameResolver>,
}

impl GuardedResolver {
    /// Returns the permitted addresses of a host.
    pub(super) async fn addresses(&self, host: String) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
        let found = self.resolver.resolve(host).await?;
        Ok(permitted(found, &self.rules)?)
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guarded = self.clone();
        Box::pin(async move {
            let permitted = guarded.addresses(name.as_str().to_owned()).await?;
            // The port of the URL replaces this one.
            let addresses: Addrs = Box::new(permitted.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

fn permitted(found: Vec<IpAddr>, rules: &AddressRules) -> Result<Vec<IpAddr>, NotPermitted> {
    let any = !found.is_empty();
    let permitted: Vec<_> = found
        .into_iter()
        .filter(|address| rules.permits_address(*address))
        .collect();
    if any && permitted.is_empty() {
        return Err(NotPermitted);
    }
    Ok(permitted)
}

#[cfg(test)]
mod tests {
    use super::super::rules::{PrivateAddresses, RuleKeys};
    use super::*;

    #[test]
    fn of_several_addresses_only_permitted_ones_are_connected_to() {
        let addresses = |list: &[&str]| -> Vec<IpAddr> { list.iter().map(|it| it.parse().unwrap()).collect() };
        let none = PrivateAddresses::In(Vec::new());
        let some = PrivateAddresses::In(vec!["10.0.0.0/8".parse().unwrap()]);
        for (found, private, expected) in [
            (&[][..], &none, Some(&[][..])),
            (&["1.1.1.1", "10.0.0.1", "::1"], &none, Some(&["1.1.1.1"])),
            (&["10.0.0.1", "::1"], &none, None),
            (&["10.0.0.1", "::1", "1.1.1.1"], &some, Some(&["10.0.0.1", "1.1.1.1"])),
            (&["192.168.0.1", "::ffff:10.0.0.1"], &some, None),
            (&["10.0.0.1", "::1"], &PrivateAddresses::All, Some(&["10.0.0.1", "::1"])),
        ] {
            let rules = AddressRules {
                private: private.clone(),
                ..AddressRules::public(RuleKeys {
                    allow_http: "",
                    private: "",
                })
            };
            let permitted = permitted(addresses(found), &rules).ok();
            assert_eq!(permitted, expected.map(addresses), "{found:?}");
        }
    }
}
