//! Limits the rate of each tenant's requests for all processes (`rate.lua`).
//!
//! The state is one key per tenant: the time at which all allowed requests would be due. During an
//! outage each process counts by itself (`run/context/rates.rs`).

use std::time::Duration;

use redis::{Cmd, cmd};

use super::keys::rate_key;
use super::link::Link;
use values::limits::{RateStanding, RequestRate};
use values::tenant::TenantId;

const TAKE: &str = include_str!("rate.lua");

/// Counts a request. Returns `None` while the server can't be reached.
pub(super) async fn take(link: &Link, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding> {
    let (allowed, remaining, wait): (u8, u32, u64) = link.send_one(command(tenant, rate)).await.ok()?;
    Some(RateStanding {
        rate,
        remaining,
        wait: (allowed == 0).then(|| Duration::from_micros(wait)),
    })
}

fn command(tenant: &TenantId, rate: RequestRate) -> Cmd {
    let interval = 1e6 / f64::from(rate.per_second.get());
    let mut command = cmd("EVAL");
    command.arg(TAKE).arg(1).arg(rate_key(tenant));
    command.arg(interval).arg(rate.burst.get());
    command
}
