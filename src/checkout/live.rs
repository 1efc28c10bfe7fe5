//! Live directories, in which the processes of background jobs write at any time: between the scans
//! and during them.
//!
//! A scan may read a file in the middle of a change. The next scan reads it again, since the file
//! has changed since the scan before began. The first scan without processes reads all files again
//! that have changed since the first process began.

use std::collections::BTreeSet;

use super::error::CheckoutError;
use super::facts::LiveDirectory;
use super::run_directory::Checkout;
use super::scan::Scanned;

impl Checkout {
    /// Begins a time in which processes may write at any time.
    pub async fn begin_live(&mut self, ephemeral: &BTreeSet<String>) -> Result<(), CheckoutError> {
        self.is_known = false;
        self.living.withdraw();
        if self.live.is_none() {
            self.live = Some(LiveDirectory {
                since: self.time().await?,
                ephemeral: ephemeral.clone(),
            });
        }
        Ok(())
    }

    /// Returns whether processes may write at any time, or have written since the last scan.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Finds what processes of a live directory have changed. If none is left, the directory is
    /// live no longer.
    pub async fn rescan(&mut self, are_left: bool) -> Result<Scanned, CheckoutError> {
        let Some(live) = self.live.clone() else {
            return Ok(Scanned {
                tree: self.tree.clone(),
                skipped: Vec::new(),
            });
        };
        if !are_left {
            self.live = None;
            // A process may change a file that it has mapped, and its times do not change then.
            let facts = self.facts_mut();
            facts.scanned_at = facts.scanned_at.min(live.since);
        }
        self.scan(&live.ephemeral).await
    }
}
