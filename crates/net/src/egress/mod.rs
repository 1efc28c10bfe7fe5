//! The proxy of commands: the only way from a command of an agent to the network.
//!
//! A command in the sandbox has a network of its own with one listener (`sandbox`). This module
//! accepts its connections, speaks HTTP as a proxy, and connects through the guard of `outgoing`.
//! It checks host and port against the lists of the operator, resolves the name itself, checks the
//! addresses and connects to exactly these.
//!
//! - `proxy.rs` accepts the connections of one command, within its limits.
//! - `connection.rs` speaks HTTP on one of them: `CONNECT` makes a tunnel, everything else is
//!   forwarded.
//! - `exchange.rs` forwards one request.
//! - `intercept.rs` ends the TLS of hosts that have a secret, and adds the secret to requests.
//!   `authority.rs` has the certificates for it, and `masked.rs` hides the secret in responses.
//!
//! A listener belongs to one command. Nobody else can connect to it, so the proxy needs no
//! passwords. Knows nothing of agents, tools and sandboxes.

mod proxy;

mod connection;
mod exchange;
mod gateway;
mod intercept;
mod refusal;

mod authority;
mod secret;

mod body;
mod masked;
mod metered;

mod limits;

pub use self::authority::AuthorityError;
pub use self::limits::EgressLimits;
pub use self::proxy::{EgressPorts, EgressProxy};
pub use self::secret::{HostSecret, SecretFault};
