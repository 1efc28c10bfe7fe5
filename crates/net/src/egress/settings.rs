//! What one command may use of the proxy.

use std::time::Duration;

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EgressLimits {
    /// Connections at the same time. Further ones wait.
    pub connections: usize,
    /// Bytes in both directions, of all connections.
    pub bytes: u64,
    /// How long resolving a name and connecting may take.
    pub connect_timeout: Duration,
    /// How long a connection may be silent in both directions, and how long the headers of a
    /// request may take.
    pub idle_timeout: Duration,
    /// How long a connection may last.
    pub connection_time: Duration,
}
