//! The files of a subagent: merged into the files of its parent agent when it ends.

use super::error::EnvironmentError;
use super::run_environment::Environment;
use crate::{MergeConflict, Merged, Tree, merge};

/// How the files of a subagent were merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The parent agent has the changes of the subagent.
    Done,
    /// Both agents changed the same files. The files of the parent agent are as they were.
    Conflicts(Vec<MergeConflict>),
}

impl Environment {
    /// Merges the files of a fork into these. `base` is the tree that the fork began with.
    pub async fn merge_fork(&self, fork: &Self, base: &Tree) -> Result<Merge, EnvironmentError> {
        let theirs = fork.tree();
        if theirs.is_same(base) {
            return Ok(Merge::Done);
        }
        let edit = self.edit().await?;
        match merge(base, &edit.tree, &theirs).await? {
            Merged::Clean(tree) => {
                // Files of the parent agent keep their times. Merged files get a current time.
                let tree = if tree.is_same(&theirs) {
                    tree
                } else {
                    tree.changed_now(&edit.tree, self.now()).await?
                };
                edit.finish(tree).await?;
                Ok(Merge::Done)
            }
            Merged::Conflicts(conflicts) => Ok(Merge::Conflicts(conflicts)),
        }
    }
}
