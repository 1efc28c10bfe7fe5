//! Counts how many of something each tenant uses in this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::tenant::TenantId;

/// Counts by tenant. A tenant with a count of zero takes no memory.
#[derive(Debug, Default)]
pub struct TenantShares(Mutex<BTreeMap<TenantId, u32>>);

/// One counted use of a tenant. Dropping it ends the count.
#[derive(Debug)]
pub struct TenantShare {
    shares: Arc<TenantShares>,
    tenant: TenantId,
}

impl TenantShares {
    /// Counts one more use for the tenant, unless the limit is reached.
    pub fn take(self: &Arc<Self>, tenant: &TenantId, limit: Option<u32>) -> Option<TenantShare> {
        let mut counts = self.counts();
        let count = counts.get(tenant).copied().unwrap_or_default();
        if limit.is_some_and(|limit| count >= limit) {
            return None;
        }
        counts.insert(tenant.clone(), count + 1);
        Some(TenantShare {
            shares: Arc::clone(self),
            tenant: tenant.clone(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<TenantId, u32>> {
        // Each change is a single call, so the map stays valid after a panic.
        self.0.lock()
    }
}

impl Drop for TenantShare {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        match counts.get_mut(&self.tenant) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.tenant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_no_more_than_its_limit_and_takes_none_of_another() {
        let shares = Arc::<TenantShares>::default();
        let [acme, other] = ["acme", "other"].map(|name| name.parse::<TenantId>().unwrap());
        let first = shares.take(&acme, Some(2)).unwrap();
        let second = shares.take(&acme, None).unwrap();
        assert!(shares.take(&acme, Some(2)).is_none());
        let third = shares.take(&other, Some(1)).unwrap();
        drop(first);
        let again = shares.take(&acme, Some(2)).unwrap();
        assert!(shares.take(&acme, Some(2)).is_none());
        drop((second, third, again));
        assert!(shares.counts().is_empty());
    }
}
