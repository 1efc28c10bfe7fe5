//! HTTP to addresses that callers, models or other servers choose. One guard for webhooks and for
//! tools.
//!
//! The guard must not give them access to the operator's network:
//!
//! - `target.rs` checks a URL before its name is resolved.
//! - `resolver.rs` checks the addresses of the name. The connection uses exactly these addresses.
//! - `redirects.rs` checks every redirect in the same way. No client follows one by itself.
//! - `connector.rs` makes connections with the same checks, for the proxy of commands.
//! - No proxy is used, since a proxy would resolve names without the checks.
//!
//! Time limits belong to the callers. Knows nothing of webhooks and tools.

mod client;
mod connector;
mod redirects;
mod response;

mod rules;
mod target;

mod host_pattern;
mod method;
mod network;
mod public_address;
mod resolver;

mod error;

pub use reqwest::Method;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub use self::client::{ClientSettings, OutgoingClient, OutgoingRequest};
pub use self::connector::Connector;
pub use self::error::{ClientError, OutgoingError, within};
pub use self::host_pattern::{HostPattern, ParseHostPatternError};
pub use self::method::HttpMethod;
pub use self::network::{Network, ParseNetworkError};
pub use self::resolver::{NameResolver, SystemResolver};
pub use self::response::{OutgoingResponse, ReadBody};
pub use self::rules::{AddressRules, PrivateAddresses, RuleKeys};
pub use self::target::{Target, UrlFault};
