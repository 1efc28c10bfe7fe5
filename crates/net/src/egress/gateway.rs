//! The parts that all connections share: the way to hosts, the limits and the secrets.

use super::intercept::Interceptor;
use super::limits::EgressLimits;
use crate::outgoing::Connector;

/// Leads the requests of commands to their hosts.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) connector: Connector,
    pub(super) limits: EgressLimits,
    /// Missing if no host has a secret.
    pub(super) interceptor: Option<Interceptor>,
}
