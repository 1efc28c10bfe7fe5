//! How a run gets a directory with the files of its tree: the cheapest way that is there.
//!
//! 1. The retained directory of this tree.
//! 2. A retained directory of a similar tree, brought to this one by the differences.
//! 3. A layer over a directory that forks of a session share, where the kernel mounts overlays. The
//!    second fork of those that run at the same time makes the shared directory.
//! 4. A new directory. Files that another directory of the tenant has are copied from there, and
//!    share their blocks with it where the file system allows (reflinks). The others are read from
//!    the store.
//!
//! A small tree is written anew at once, unless its own directory is there.

use std::sync::Arc;

use super::checkouts::Checkouts;
use super::copy::Source;
use super::error::CheckoutError;
use super::facts::Facts;
use super::janitor::{Base, Retained};
use super::living::Known;
use super::run_directory::Checkout;
use crate::workspace::Tree;

/// A tree with fewer files is written faster than others are compared with it.
const MIN_FILES: u64 = 64;
/// Trees are similar if at most one file of so many differs.
const SIMILAR: u64 = 4;
/// The most directories that are compared with a tree.
const MAX_COMPARED: usize = 4;

impl Checkouts {
    /// Returns a directory with the files of a saved tree.
    pub async fn take(&self, tree: &Tree) -> Result<Checkout, CheckoutError> {
        let retained = self.shelf.lock().take(tree);
        if let Some(retained) = retained {
            return Ok(self.checkout(retained));
        }
        let files = tree.totals().await?.files;
        if files < MIN_FILES {
            return self.write(tree, None).await;
        }
        let wanted = Wanted {
            checkouts: self,
            tree,
            max_changes: usize::try_from(files / SIMILAR).unwrap_or(usize::MAX),
        };
        if let Some(checkout) = wanted.updated_retained().await {
            return Ok(checkout);
        }
        if self.has_overlays
            && let Some(base) = wanted.base().await?
        {
            return self.layer_over(base)?.updated(tree).await;
        }
        let source = wanted.source().await;
        self.write(tree, source.map(Arc::new)).await
    }

    /// Returns a directory with the same files that several commands can use at the same time. That
    /// is the same one, unless it is a layer over another: the kernel mounts such a layer only
    /// once. No command may use it meanwhile, and its state must be known.
    pub async fn unlayered(&self, checkout: Checkout) -> Result<Checkout, CheckoutError> {
        let Some(base) = checkout.directory.base.clone() else {
            return Ok(checkout);
        };
        let tree = checkout.tree.save().await?;
        let changes = base.tree.diff(&tree, usize::MAX).await?;
        let source = Source::new(base.known(), changes);
        let new = self.write(&tree, Some(Arc::new(source))).await?;
        checkout.move_rest_to(&new).await?;
        Ok(new)
    }

    fn checkout(&self, retained: Retained) -> Checkout {
        let Retained { tree, directory, facts } = retained;
        let checkout = Checkout::new(directory, tree, facts);
        if checkout.directory.base.is_none() {
            self.shelf.lock().add_living(checkout.tree.tenant(), &checkout.living);
        }
        checkout
    }

    /// Writes the files into a new directory.
    async fn write(&self, tree: &Tree, source: Option<Arc<Source>>) -> Result<Checkout, CheckoutError> {
        let directory = self.new_directory(Some(tree.tenant().clone()), None)?;
        let mut checkout = Checkout::new(directory, tree.emptied(), Arc::default());
        // Others learn at once that this tree is in use.
        checkout
            .living
            .publish(tree, checkout.directory.layer(), &Arc::default());
        self.shelf.lock().add_living(tree.tenant(), &checkout.living);
        checkout.update_from(tree, source.as_ref()).await?;
        Ok(checkout)
    }

    fn layer_over(&self, base: Arc<Base>) -> Result<Checkout, CheckoutError> {
        let (tree, facts) = (base.tree.clone(), Arc::clone(&base.facts));
        let directory = self.new_directory(Some(tree.tenant().clone()), Some(base))?;
        Ok(Checkout::new(directory, tree, facts))
    }
}

/// A tree that a run wants a directory for.
struct Wanted<'a> {
    checkouts: &'a Checkouts,
    tree: &'a Tree,
    /// Trees with more differences are not similar.
    max_changes: usize,
}

impl Wanted<'_> {
    /// Brings a retained directory of a similar tree to this one.
    async fn updated_retained(&self) -> Option<Checkout> {
        let candidates = self.checkouts.shelf.lock().retained_of(self.tree.tenant());
        for tree in candidates.into_iter().take(MAX_COMPARED) {
            if !self.is_similar(&tree).await {
                continue;
            }
            let retained = self.checkouts.shelf.lock().take(&tree);
            if let Some(retained) = retained
                // Another way remains if this one fails.
                && let Ok(checkout) = self.checkouts.checkout(retained).updated(self.tree).await
            {
                return Some(checkout);
            }
        }
        None
    }

    /// Returns a shared directory of a similar tree. Makes one if a similar tree is in use.
    async fn base(&self) -> Result<Option<Arc<Base>>, CheckoutError> {
        let making = self.checkouts.shelf.lock().maker(self.tree.tenant());
        let _making = making.await;
        let bases = self.checkouts.shelf.lock().bases_of(self.tree.tenant());
        for base in bases.into_iter().take(MAX_COMPARED) {
            if self.is_similar(&base.tree).await {
                return Ok(Some(base));
            }
        }
        let Some(source) = self.source().await else {
            return Ok(None);
        };
        let written = self.checkouts.write(self.tree, Some(Arc::new(source))).await?;
        let base = Arc::new(written.into_base());
        self.checkouts.shelf.lock().add_base(&base);
        Ok(Some(base))
    }

    /// Finds a directory from which files can be copied.
    async fn source(&self) -> Option<Source> {
        let shelf = &self.checkouts.shelf;
        let mut candidates = shelf.lock().living_of(self.tree.tenant());
        let bases = shelf.lock().bases_of(self.tree.tenant());
        candidates.extend(bases.iter().map(|base| base.known()));
        for known in candidates.into_iter().take(MAX_COMPARED) {
            if let Ok(changes) = known.tree.diff(self.tree, self.max_changes).await
                && !changes.is_truncated
            {
                return Some(Source::new(known, changes));
            }
        }
        None
    }

    async fn is_similar(&self, other: &Tree) -> bool {
        let changes = other.diff(self.tree, self.max_changes).await;
        changes.is_ok_and(|changes| !changes.is_truncated)
    }
}

impl Base {
    fn known(&self) -> Known {
        Known {
            tree: self.tree.clone(),
            root: self.directory.layer(),
            facts: Arc::<Facts>::clone(&self.facts),
        }
    }
}
