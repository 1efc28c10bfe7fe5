//! The limits of one command at the proxy.

use std::time::Duration;

use serde::Deserialize;

use values::settings::{duration, integer};

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct EgressLimits {
    /// Connections at the same time. Further ones wait.
    #[serde(rename = "max_connections", deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub connections: usize,
    /// Bytes in both directions, of all connections.
    #[serde(rename = "max_bytes", deserialize_with = "integer::<_, 1_024, 1_099_511_627_776, _>")]
    pub bytes: u64,
    /// How long resolving a name and connecting may take.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// How long a connection may be silent in both directions, and how long the headers of a
    /// request may take.
    #[serde(deserialize_with = "duration::<100, 3_600_000, _>")]
    pub idle_timeout: Duration,
    /// How long a connection may last.
    #[serde(
        rename = "max_connection_time",
        deserialize_with = "duration::<1_000, 86_400_000, _>"
    )]
    pub connection_time: Duration,
}
