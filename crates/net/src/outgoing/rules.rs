//! The rules of a client: the schemes, hosts, ports and addresses that it may connect to. No IO.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;

use super::host_pattern::HostPattern;
use super::network::Network;
use super::public_address::is_public;

/// The addresses that a client may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AddressRules {
    /// Whether requests may be sent unencrypted.
    #[serde(default)]
    pub allow_http: bool,
    /// The permitted addresses that are not public.
    #[serde(rename = "allow_networks")]
    pub private: PrivateAddresses,
    /// The permitted hosts; empty permits all.
    pub allow_hosts: Vec<HostPattern>,
    /// The hosts that are refused even if they are permitted otherwise.
    #[serde(default)]
    pub deny_hosts: Vec<HostPattern>,
    /// The permitted ports; an empty list permits all ports except those of other protocols.
    pub ports: BTreeSet<u16>,
    /// The keys of the configuration that error messages name.
    #[serde(skip)]
    pub keys: RuleKeys,
}

/// The permitted addresses that are not public.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Network>")]
pub enum PrivateAddresses {
    /// All of them.
    All,
    /// The addresses in the networks.
    In(Vec<Network>),
}

/// The keys with which an operator permits more. Messages name them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleKeys {
    /// The key that permits unencrypted requests.
    pub allow_http: &'static str,
    /// The key that permits addresses that are not public.
    pub private: &'static str,
}

impl From<Vec<Network>> for PrivateAddresses {
    fn from(networks: Vec<Network>) -> Self {
        Self::In(networks)
    }
}

/// Ports of protocols that can be abused with an HTTP request, such as SMTP. These are the bad
/// ports of the Fetch standard.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

impl AddressRules {
    /// Makes rules that permit `https` to all public addresses.
    pub fn public(keys: RuleKeys) -> Self {
        Self {
            allow_http: false,
            private: PrivateAddresses::In(Vec::new()),
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            ports: BTreeSet::new(),
            keys,
        }
    }

    /// Makes rules for addresses that the operator chooses: `http` too, and private ones.
    pub fn of_operator() -> Self {
        Self {
            allow_http: true,
            private: PrivateAddresses::All,
            ..Self::public(RuleKeys::default())
        }
    }

    /// Returns whether the client may connect to the address.
    pub(super) fn permits_address(&self, address: IpAddr) -> bool {
        is_public(address)
            || match &self.private {
                PrivateAddresses::All => true,
                PrivateAddresses::In(networks) => networks.iter().any(|network| network.contains(address)),
            }
    }

    /// Returns whether a URL may have the host.
    pub(super) fn permits_host(&self, host: &str) -> bool {
        let matches = |patterns: &[HostPattern]| patterns.iter().any(|pattern| pattern.matches(host));
        (self.allow_hosts.is_empty() || matches(&self.allow_hosts)) && !matches(&self.deny_hosts)
    }

    /// Returns whether a URL may have the port.
    pub(super) fn permits_port(&self, port: u16) -> bool {
        if self.ports.is_empty() {
            !BAD_PORTS.contains(&port)
        } else {
            self.ports.contains(&port)
        }
    }
}
