//! The checked addresses of webhooks. `outgoing` makes the checks.

use net::outgoing::{Target, UrlFault};

/// An address that a sender may send to. Only its host is shown, since its path and query may hold
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Target);

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct EndpointFault(#[from] UrlFault);

impl Endpoint {
    pub(super) fn new(target: Target) -> Self {
        Self(target)
    }

    pub(super) fn target(&self) -> &Target {
        &self.0
    }

    /// Returns the name or address of the host.
    pub fn host(&self) -> &str {
        self.0.host()
    }
}
