//! The other side of a connection.

use std::net::IpAddr;

/// The address from which a request comes: that of a proxy, if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);
