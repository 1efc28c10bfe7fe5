//! Networks by their prefix, such as `10.1.0.0/16`. No IO.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;

/// A network of IPv4 or IPv6 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A text that is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a network is an IP address and the length of its prefix, such as \"10.1.0.0/16\" or \"fd00::/8\"")]
pub struct ParseNetworkError;

impl Network {
    /// Returns whether the address is in the network. An IPv4 address that is written as IPv6 is in
    /// no network of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.checked_shr(u32::BITS - self.prefix).unwrap_or_default() == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.checked_shr(u128::BITS - self.prefix).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    /// Parses a network. An address without a prefix is a network of one address.
    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ParseNetworkError)?;
        let longest = if address.is_ipv4() { u32::BITS } else { u128::BITS };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| ParseNetworkError)?,
            None => longest,
        };
        if prefix > longest {
            return Err(ParseNetworkError);
        }
        Ok(Self { address, prefix })
    }
}

impl TryFrom<String> for Network {
    type Error = ParseNetworkError;

    fn try_from(text: String) -> Result<Self, ParseNetworkError> {
        text.parse()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        for (network, address, expected) in [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.2.3/16", "10.1.0.0", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("10.1.2.3/32", "10.1.2.2", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::1", "::1", true),
            ("::1", "::2", false),
            ("::/0", "ffff::1", true),
            ("::/0", "127.0.0.1", false),
            ("127.0.0.0/8", "::ffff:127.0.0.1", false),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(
                parsed.contains(address.parse().unwrap()),
                expected,
                "{address} in {network}"
            );
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "example.org",
            "[::1]",
        ] {
            assert_eq!(text.parse::<Network>(), Err(ParseNetworkError), "{text}");
        }
        assert_eq!("10.0.0.1".parse::<Network>().unwrap().to_string(), "10.0.0.1/32");
    }
}
