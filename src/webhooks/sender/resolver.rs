//! Resolves names to permitted addresses.
//!
//! The connection uses exactly these addresses. So an attack with a name that soon resolves
//! differently fails.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::public_address::is_public;

/// The error if all addresses of a name are forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no address of the name is public")]
pub(super) struct NotPublic;

/// Resolves names with the system's resolver. Drops addresses that are not public unless all are
/// allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuardedResolver {
    pub(super) allow_private_addresses: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_all = self.allow_private_addresses;
        Box::pin(async move {
            // The port of the URL replaces this one.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let permitted = permitted(found.collect(), allow_all)?;
            let addresses: Addrs = Box::new(permitted.into_iter());
            Ok(addresses)
        })
    }
}

fn permitted(found: Vec<SocketAddr>, allow_all: bool) -> Result<Vec<SocketAddr>, NotPublic> {
    let any = !found.is_empty();
    let permitted: Vec<_> = found
        .into_iter()
        .filter(|address| allow_all || is_public(address.ip()))
        .collect();
    if any && permitted.is_empty() {
        return Err(NotPublic);
    }
    Ok(permitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_only_public_ones_are_connected_to() {
        let addresses = |list: &[&str]| -> Vec<SocketAddr> { list.iter().map(|it| it.parse().unwrap()).collect() };
        for (found, allow_all, expected) in [
            (&[][..], false, Some(&[][..])),
            (&["1.1.1.1:0", "10.0.0.1:0", "[::1]:0"], false, Some(&["1.1.1.1:0"])),
            (&["10.0.0.1:0", "[::1]:0"], false, None),
            (&["10.0.0.1:0", "[::1]:0"], true, Some(&["10.0.0.1:0", "[::1]:0"])),
        ] {
            let permitted = permitted(addresses(found), allow_all).ok();
            assert_eq!(permitted, expected.map(addresses), "{found:?}");
        }
    }
}
