//! Counts the requests of this process, for the rate limits of tenants. Used while the board, which
//! counts the requests of all processes, is unavailable.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use values::limits::{Limits, RateStanding, RequestRate};
use values::tenant::TenantId;

/// After this number of requests, the counts of inactive tenants are dropped.
const SWEEP_EVERY: u32 = 10_000;

type Limiter = RateLimiter<TenantId, HashMapStateStore<TenantId>, DefaultClock, StateInformationMiddleware>;

/// Counts the requests of this process.
pub(in crate::run) struct Rates {
    limiters: BTreeMap<RequestRate, Limiter>,
    requests: AtomicU32,
}

impl Rates {
    /// Creates a counter for each configured rate.
    pub(in crate::run) fn new(limits: &Limits) -> Self {
        let limiter = |rate: RequestRate| {
            let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
            (rate, RateLimiter::hashmap(quota).with_middleware())
        };
        Self {
            limiters: limits.rates().map(limiter).collect(),
            requests: AtomicU32::new(0),
        }
    }

    /// Counts a request of the tenant. Returns its use of the rate; `None` if the rate is not
    /// configured.
    pub(in crate::run) fn take(&self, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding> {
        let limiter = self.limiters.get(&rate)?;
        if self.requests.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.limiters.values().for_each(RateLimiter::retain_recent);
        }
        Some(match limiter.check_key(tenant) {
            Ok(state) => RateStanding {
                rate,
                remaining: state.remaining_burst_capacity(),
                wait: None,
            },
            Err(refused) => RateStanding {
                rate,
                remaining: 0,
                wait: Some(refused.wait_time_from(limiter.clock().now())),
            },
        })
    }
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.limiters.keys()).finish()
    }
}
