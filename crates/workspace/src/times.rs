//! The times at which contents of files last changed. Builds compare them.
//!
//! A time alone is no change of a file: two files with equal contents are the same.

use super::entry::Entry;
use super::error::TreeError;
use super::node::Slot;
use super::path::FilePath;
use super::resolve::{LastLink, Position};
use super::tree::Tree;

/// The most files whose times are changed one by one.
const MAX_FILES: usize = 10_000;
/// The order of times that are this far apart survives a merge.
const ORDER_BITS: u32 = 20;

impl Tree {
    /// Returns the tree with another time of a file. Returns the same tree if it has no file there.
    pub async fn with_time(&self, path: &FilePath, modified: u64) -> Result<Self, TreeError> {
        match self.locate(path, LastLink::Keep).await? {
            Position::Name {
                steps,
                slot: Some(Slot::File(mut file)),
                ..
            } if file.modified != modified => {
                file.modified = modified;
                self.replace(steps, Some(Slot::File(file))).await
            }
            _ => Ok(self.clone()),
        }
    }

    /// Gives each file that differs from an earlier tree a current time, as if it were written now.
    /// A file that was changed after another one stays newer than the other.
    pub async fn changed_now(self, before: &Self, now: u64) -> Result<Self, TreeError> {
        let changes = before.diff(&self, MAX_FILES).await?.changes;
        let mut tree = self;
        for change in changes {
            if let Some(Entry::File { modified, .. }) = change.after {
                let age = if modified == 0 { 0 } else { now.saturating_sub(modified) };
                tree = tree.with_time(&change.path, now - (age >> ORDER_BITS)).await?;
            }
        }
        Ok(tree)
    }
}
