//! The environment of a run while it runs.
//!
//! Every change makes a new revision. The recorder of an execution persists the environment with
//! the next journal entry after a change, so a takeover continues with the same values and files.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use super::error::EnvironmentError;
use super::values::EnvironmentValues;
use crate::json::{Object, Value};
use crate::session::{EnvironmentState, ShellState, WorkspaceState};
use crate::tenant::TenantId;
use crate::workspace::{Contents, InMemoryContents, Tree, WorkspaceLimits};

/// Larger new contents are stored at once, so that they do not stay in memory until the commit.
const MAX_UNSAVED_BYTES: u64 = 4 << 20;

/// The environment of a run. Shared by its tools, hooks and prompts.
#[derive(Debug)]
pub struct Environment {
    live: Mutex<Live>,
    /// Locked by the one writer of the workspace.
    writer: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Live {
    values: EnvironmentValues,
    tree: Tree,
    /// Keys of the stored workspace that this version does not know.
    workspace_other: Object,
    shell: Option<ShellState>,
    /// Keys of the stored environment that this version does not know.
    other: Object,
    /// The number of changes since the environment was first restored.
    revision: u64,
}

impl Environment {
    /// Restores an environment. Reads no file: directories are read when they are first needed.
    pub fn restore(state: EnvironmentState, contents: Arc<dyn Contents>, limits: WorkspaceLimits) -> Self {
        let EnvironmentState {
            variables,
            resources,
            workspace,
            shell,
            other,
        } = state;
        let (tree, workspace_other) = match workspace {
            Some(WorkspaceState { tree, other }) => (Tree::open(contents, limits, tree), other),
            None => (Tree::empty(contents, limits), Object::new()),
        };
        Self::of(Live {
            values: EnvironmentValues {
                variables: Arc::new(variables),
                resources: Arc::new(resources),
            },
            tree,
            workspace_other,
            shell,
            other,
            revision: 0,
        })
    }

    /// Restores an environment whose files stay in memory, for tests and benchmarks.
    pub fn in_memory(state: EnvironmentState) -> Self {
        let contents = Arc::new(InMemoryContents::new(TenantId::anonymous()));
        Self::restore(state, contents, WorkspaceLimits::default())
    }

    fn of(live: Live) -> Self {
        Self {
            live: Mutex::new(live),
            writer: tokio::sync::Mutex::default(),
        }
    }

    /// Sets the revision at which an earlier worker persisted the environment.
    #[must_use]
    pub fn at_revision(mut self, revision: u64) -> Self {
        self.live.get_mut().revision = revision;
        self
    }

    /// Returns the number of changes.
    pub fn revision(&self) -> u64 {
        self.live.lock().revision
    }

    /// Returns the variables and resources.
    pub fn values(&self) -> EnvironmentValues {
        self.live.lock().values.clone()
    }

    /// Returns the variables.
    pub fn variables(&self) -> Arc<BTreeMap<String, Value>> {
        Arc::clone(&self.live.lock().values.variables)
    }

    /// Sets variables; a `null` removes its variable. Changes nothing if a limit would be exceeded.
    pub fn change_variables(&self, changes: BTreeMap<String, Value>) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_variables(changes))
    }

    /// Sets resources; a `null` removes its resource. Changes nothing if a limit would be exceeded.
    pub fn change_resources(&self, changes: BTreeMap<String, Value>) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_resources(changes))
    }

    /// Makes the changes that lead from `before` to `after`. Changes that were made since `before`
    /// survive.
    pub fn change_values(&self, before: &EnvironmentValues, after: &EnvironmentValues) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_changes(before, after))
    }

    fn change(&self, make: impl FnOnce(EnvironmentValues) -> EnvironmentValues) -> Result<(), EnvironmentError> {
        let mut live = self.live.lock();
        let changed = make(live.values.clone());
        if changed == live.values {
            return Ok(());
        }
        changed.check_changes(&live.values)?;
        live.values = changed;
        live.revision += 1;
        Ok(())
    }

    /// Returns the files as they are now. Later changes do not show in the returned tree.
    pub fn tree(&self) -> Tree {
        self.live.lock().tree.clone()
    }

    /// Waits until no other writer changes the files, then begins a change.
    pub async fn edit(&self) -> WorkspaceEdit<'_> {
        let writer = self.writer.lock().await;
        WorkspaceEdit {
            tree: self.tree(),
            environment: self,
            _writer: writer,
        }
    }

    /// Stores new files, and returns the state that restores an equal environment.
    pub async fn export(&self) -> Result<EnvironmentState, EnvironmentError> {
        self.export_with_revision().await.map(|(state, _)| state)
    }

    /// Exports the environment, with the revision that the exported state has.
    pub async fn export_with_revision(&self) -> Result<(EnvironmentState, u64), EnvironmentError> {
        let live = self.live.lock().clone();
        let tree = live.tree.save().await?;
        // If nobody has changed the files meanwhile, the stored ones need not stay in memory.
        let mut now = self.live.lock();
        if now.revision == live.revision {
            now.tree = tree.clone();
        }
        drop(now);
        let revision = live.revision;
        Ok((Live { tree, ..live }.into_state(), revision))
    }

    /// Returns the state without storing anything. Files that are not stored yet are missing from
    /// it.
    pub fn stored_state(&self) -> EnvironmentState {
        self.live.lock().clone().into_state()
    }

    /// Returns an environment with the same values and files. Changes of either do not show in the
    /// other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let live = self.live.lock().clone();
        Self::of(Live { revision: 0, ..live })
    }

    /// Restores another state, with the contents and the limits of this environment.
    #[must_use]
    pub fn again(&self, state: EnvironmentState) -> Self {
        let (contents, limits) = self.live.lock().tree.source();
        Self::restore(state, contents, limits)
    }

    /// Returns an environment with the same values and without files.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let live = self.live.lock().clone();
        let tree = live.tree.emptied();
        Self::of(Live {
            revision: 0,
            shell: None,
            tree,
            ..live
        })
    }
}

impl Live {
    fn into_state(self) -> EnvironmentState {
        let other = self.workspace_other;
        EnvironmentState {
            variables: Arc::unwrap_or_clone(self.values.variables),
            resources: Arc::unwrap_or_clone(self.values.resources),
            workspace: self.tree.hash().map(|tree| WorkspaceState { tree, other }),
            shell: self.shell,
            other: self.other,
        }
    }
}

/// A change of the files. Other writers wait until it is finished or dropped; readers see the files
/// as they were before.
#[derive(Debug)]
#[must_use = "a change is nothing until it is finished"]
pub struct WorkspaceEdit<'a> {
    /// The files before the change.
    pub tree: Tree,
    environment: &'a Environment,
    _writer: MutexGuard<'a, ()>,
}

impl WorkspaceEdit<'_> {
    /// Replaces the files. Stores large new contents at once, so a failure of the store changes
    /// nothing.
    pub async fn finish(self, tree: Tree) -> Result<(), EnvironmentError> {
        let tree = if tree.unsaved_bytes() > MAX_UNSAVED_BYTES {
            tree.save().await?
        } else {
            tree
        };
        let mut live = self.environment.live.lock();
        live.tree = tree;
        live.revision += 1;
        Ok(())
    }
}
