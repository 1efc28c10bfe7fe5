//! Limits that operators set: what the runs of a tenant or of an API key may spend, which agents
//! and models they may use, and how much a tenant may use at once.
//!
//! `run/limits.rs` applies those of runs. `TenantShares` counts what a tenant uses in this process.
//! The number of waiting runs is counted in the transaction that accepts one, under a lock of the
//! tenant, so concurrent requests never exceed it.

mod pattern;
mod shares;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::pattern::{ParsePatternError, Pattern};
pub use self::shares::{TenantShare, TenantShares};
use crate::tenant::TenantId;
use crate::usage::Cost;

/// The limits of all tenants.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    each_tenant: Arc<TenantLimits>,
    tenants: BTreeMap<TenantId, Arc<TenantLimits>>,
}

/// What one tenant may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// What bounds each of its runs.
    pub runs: RunLimits,
    /// The most light runs that it has in progress in a process.
    pub light_runs: Option<u32>,
    /// The most runs that it has waiting in the queue.
    pub queued_runs: Option<u32>,
    /// The most readers that follow runs or wait for them in a process.
    pub readers: Option<u32>,
    /// The requests that it may make.
    pub requests: Option<RequestRate>,
}

/// What bounds each run; an absent limit does not bind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// The most steps of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The most tokens, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The most seconds from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u32>,
    /// The most US dollars. Models without a price are not allowed then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    /// The names of the agents that may work; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Pattern>,
    /// The models that may be asked, as `PROVIDER/MODEL`; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Pattern>,
    /// The providers that may be asked; empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<Pattern>,
}

/// How many requests a tenant may make: some at once, and then so many each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRate {
    /// The requests each second.
    pub per_second: NonZeroU32,
    /// The requests at once.
    pub burst: NonZeroU32,
}

/// What a tenant has left of its rate after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStanding {
    /// The rate.
    pub rate: RequestRate,
    /// The requests that it may make at once now.
    pub remaining: u32,
    /// How long it has to wait for the next; none when this one is allowed.
    pub wait: Option<Duration>,
}

impl Limits {
    /// Makes the limits of single tenants, and those of all others.
    pub fn new(each_tenant: TenantLimits, tenants: impl IntoIterator<Item = (TenantId, TenantLimits)>) -> Self {
        let tenants = tenants.into_iter();
        Self {
            each_tenant: Arc::new(each_tenant),
            tenants: tenants.map(|(tenant, limits)| (tenant, Arc::new(limits))).collect(),
        }
    }

    /// Returns the rates of all tenants that have one.
    pub fn rates(&self) -> impl Iterator<Item = RequestRate> {
        let all = self.tenants.values().chain([&self.each_tenant]);
        all.filter_map(|limits| limits.requests)
    }

    /// Returns the limits of the tenant.
    pub fn of(&self, tenant: &TenantId) -> &Arc<TenantLimits> {
        self.tenants.get(tenant).unwrap_or(&self.each_tenant)
    }
}

impl RunLimits {
    /// Returns whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_own_limits_or_those_of_all() {
        let steps = |max_steps| TenantLimits {
            runs: RunLimits {
                max_steps: Some(max_steps),
                ..RunLimits::default()
            },
            ..TenantLimits::default()
        };
        let limits = Limits::new(steps(5), [("acme".parse().unwrap(), steps(9))]);
        assert_eq!(**limits.of(&"acme".parse().unwrap()), steps(9));
        assert_eq!(**limits.of(&"other".parse().unwrap()), steps(5));
    }

    #[test]
    fn limits_are_written_and_read_and_unknown_ones_are_refused() {
        let limits = RunLimits {
            max_tokens: Some(7),
            max_cost: Cost::from_dollars(0.25),
            models: vec!["openai/*".parse().unwrap()],
            ..RunLimits::default()
        };
        let json = serde_json::to_string(&limits).unwrap();
        assert_eq!(json, r#"{"max_tokens":7,"max_cost":0.25,"models":["openai/*"]}"#);
        assert_eq!(serde_json::from_str::<RunLimits>(&json).unwrap(), limits);
        // A limit that is not understood would not bind.
        for bad in [r#"{"max_moons": 1}"#, r#"{"models": [""]}"#, r#"{"max_steps": -1}"#] {
            serde_json::from_str::<RunLimits>(bad).unwrap_err();
        }
    }
}
