//! Which directories this process has: those of ended runs, those in use, and shared ones.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use tokio::sync::OwnedMutexGuard;

use super::janitor::{Base, Retained};
use super::living::{Known, Living};
use crate::tenant::TenantId;
use crate::workspace::Tree;

/// The directories of this process.
#[derive(Debug)]
pub(super) struct Shelf {
    /// Those of ended runs, the oldest first.
    pub(super) retained: VecDeque<Retained>,
    /// The most directories that are retained.
    pub(super) capacity: usize,
    /// Those that runs use alone.
    living: Vec<(TenantId, Weak<Living>)>,
    /// Those that checkouts share.
    bases: Vec<Weak<Base>>,
    /// Locked by those who make a directory to be shared.
    makers: HashMap<TenantId, Weak<tokio::sync::Mutex<()>>>,
}

impl Shelf {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            retained: VecDeque::new(),
            capacity,
            living: Vec::new(),
            bases: Vec::new(),
            makers: HashMap::new(),
        }
    }

    /// Takes the directory that has exactly this tree.
    pub(super) fn take(&mut self, tree: &Tree) -> Option<Retained> {
        tree.hash()?;
        let is_same = |one: &Retained| one.tree.is_same(tree) && one.tree.tenant() == tree.tenant();
        let index = self.retained.iter().position(is_same)?;
        self.retained.remove(index)
    }

    /// Retains a directory. Returns the one that has no room any more.
    pub(super) fn put(&mut self, directory: Retained) -> Option<Retained> {
        self.retained.push_back(directory);
        if self.retained.len() > self.capacity {
            self.retained.pop_front()
        } else {
            None
        }
    }

    /// Returns the trees of a tenant's retained directories, the newest first.
    pub(super) fn retained_of(&self, tenant: &TenantId) -> Vec<Tree> {
        let trees = self.retained.iter().rev().map(|one| &one.tree);
        trees.filter(|tree| tree.tenant() == tenant).cloned().collect()
    }

    pub(super) fn add_living(&mut self, tenant: &TenantId, living: &Arc<Living>) {
        self.living.retain(|(_, living)| living.strong_count() > 0);
        self.living.push((tenant.clone(), Arc::downgrade(living)));
    }

    /// Returns what is known of the directories that a tenant's runs use alone.
    pub(super) fn living_of(&self, tenant: &TenantId) -> Vec<Known> {
        let of_tenant = self.living.iter().rev().filter(|(of, _)| of == tenant);
        of_tenant.filter_map(|(_, living)| living.upgrade()?.known()).collect()
    }

    pub(super) fn add_base(&mut self, base: &Arc<Base>) {
        self.bases.retain(|base| base.strong_count() > 0);
        self.bases.push(Arc::downgrade(base));
    }

    /// Returns a tenant's shared directories, the newest first.
    pub(super) fn bases_of(&self, tenant: &TenantId) -> Vec<Arc<Base>> {
        let bases = self.bases.iter().rev().filter_map(Weak::upgrade);
        bases.filter(|base| base.tree.tenant() == tenant).collect()
    }

    /// Returns the lock of those who make a tenant's shared directories, one after the other.
    pub(super) fn maker(&mut self, tenant: &TenantId) -> impl Future<Output = OwnedMutexGuard<()>> + use<> {
        let maker = self.makers.get(tenant).and_then(Weak::upgrade).unwrap_or_default();
        self.makers.retain(|_, maker| maker.strong_count() > 0);
        self.makers.insert(tenant.clone(), Arc::downgrade(&maker));
        maker.lock_owned()
    }
}
