//! Limits the messages in flight per host and per tenant, so that none of them takes all slots.
//! Sends nothing.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use agent::record::receiver_of;
use store::outbox::DueDelivery;
use values::tenant::TenantId;

/// Counts the messages in flight.
#[derive(Debug)]
pub(super) struct Receivers {
    slots: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    hosts: HashMap<String, usize>,
    tenants: HashMap<TenantId, usize>,
}

/// The share of a message in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    receivers: Arc<Receivers>,
    host: String,
    tenant: TenantId,
}

/// The hosts and the tenants that have used up their share of the slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) hosts: Vec<String>,
    pub(super) tenants: Vec<TenantId>,
}

impl Receivers {
    /// Creates counters for this number of slots.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots,
            counts: Mutex::default(),
        }
    }

    /// Returns the share of a host: a quarter of the slots. No more messages are leased at once,
    /// since all of them may go to one host.
    pub(super) fn share(&self) -> usize {
        (self.slots / 4).max(1)
    }

    /// Returns the share of a tenant: half of the slots.
    fn tenant_share(&self) -> usize {
        (self.slots / 2).max(1)
    }

    /// Counts a message that is about to be sent.
    pub(super) fn take(self: &Arc<Self>, due: &DueDelivery) -> Share {
        let (host, tenant) = (receiver_of(&due.record.url), due.tenant.clone());
        let mut counts = self.counts();
        *counts.hosts.entry(host.clone()).or_default() += 1;
        *counts.tenants.entry(tenant.clone()).or_default() += 1;
        drop(counts);
        Share {
            receivers: Arc::clone(self),
            host,
            tenant,
        }
    }

    /// Lists the hosts and the tenants that have used up their share.
    pub(super) fn busy(&self) -> Busy {
        let counts = self.counts();
        Busy {
            hosts: at_least(&counts.hosts, self.share()),
            tenants: at_least(&counts.tenants, self.tenant_share()),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Each change updates one count, so a panic never leaves a partial change.
        self.counts.lock()
    }
}

impl Share {
    /// Returns whether messages to its host or of its tenant are skipped.
    pub(super) fn is_full(&self) -> bool {
        let busy = self.receivers.busy();
        busy.hosts.contains(&self.host) || busy.tenants.contains(&self.tenant)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.receivers.counts();
        count_down(&mut counts.hosts, &self.host);
        count_down(&mut counts.tenants, &self.tenant);
    }
}

fn at_least<K: Clone>(counts: &HashMap<K, usize>, share: usize) -> Vec<K> {
    let busy = counts.iter().filter(|(_, count)| **count >= share);
    busy.map(|(key, _)| key.clone()).collect()
}

fn count_down<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
