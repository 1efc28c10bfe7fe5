//! Rates of requests.

use std::num::NonZeroU32;
use std::time::Duration;

/// How many requests a tenant may make: some at once, and then so many each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRate {
    /// The requests of a second.
    pub per_second: NonZeroU32,
    /// The requests at once.
    pub burst: NonZeroU32,
}

/// Where a tenant stands after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStanding {
    /// The rate.
    pub rate: RequestRate,
    /// The requests that it may make at once now.
    pub remaining: u32,
    /// How long it has to wait for the next; none when this one is allowed.
    pub wait: Option<Duration>,
}
