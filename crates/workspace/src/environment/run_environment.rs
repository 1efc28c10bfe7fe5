//! The environment of a run while it runs.
//!
//! Every change makes a new revision. The recorder of an execution persists the environment with
//! the next journal entry after a change, so a takeover continues with the same values and files.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use super::error::EnvironmentError;
use super::jobs::Jobs;
use super::values::EnvironmentValues;
use crate::checkout::{Checkout, SkippedFiles};
use crate::{Contents, FilePath, InMemoryContents, Tree, WorkspaceLimits};
use values::clock::{Clock, nanoseconds};
use values::json::{Object, Value};
use values::session::{EnvironmentState, ShellState, WorkspaceState};
use values::tenant::TenantId;

/// Larger new contents are stored at once, so that they do not stay in memory until the commit.
const MAX_UNSAVED_BYTES: u64 = 4 << 20;

/// The environment of a run. Shared by its tools, hooks and prompts.
#[derive(Debug)]
pub struct Environment {
    current: Mutex<Current>,
    /// Locked by the one writer of the workspace. Has the directory that commands use, if one was
    /// made.
    writer: tokio::sync::Mutex<Option<Checkout>>,
    /// Locked while the files are brought up to date for readers.
    refreshing: tokio::sync::Mutex<()>,
    jobs: Jobs,
    /// Gives written files their times; they have none without it.
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Debug, Clone)]
struct Current {
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
        let current = Current {
            values: EnvironmentValues {
                variables: Arc::new(variables),
                resources: Arc::new(resources),
            },
            tree,
            workspace_other,
            shell,
            other,
            revision: 0,
        };
        Self::of(current, Jobs::default())
    }

    /// Restores an environment whose files stay in memory, for tests and benchmarks.
    pub fn in_memory(state: EnvironmentState) -> Self {
        let contents = Arc::new(InMemoryContents::new(TenantId::anonymous()));
        Self::restore(state, contents, WorkspaceLimits::default())
    }

    fn of(current: Current, jobs: Jobs) -> Self {
        Self {
            current: Mutex::new(current),
            writer: tokio::sync::Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            jobs,
            clock: None,
        }
    }

    /// Sets the clock that gives written files their times.
    #[must_use]
    pub fn with_clock(self, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the time of a change now, in nanoseconds since 1970; 0 without a clock.
    pub(super) fn now(&self) -> u64 {
        self.clock.as_ref().map_or(0, |clock| nanoseconds(clock.now()))
    }

    /// Sets the revision at which an earlier worker persisted the environment.
    #[must_use]
    pub fn at_revision(mut self, revision: u64) -> Self {
        self.current.get_mut().revision = revision;
        self
    }

    /// Returns the number of changes.
    pub fn revision(&self) -> u64 {
        self.current.lock().revision
    }

    /// Returns the variables and resources.
    pub fn values(&self) -> EnvironmentValues {
        self.current.lock().values.clone()
    }

    /// Returns the variables.
    pub fn variables(&self) -> Arc<BTreeMap<String, Value>> {
        Arc::clone(&self.current.lock().values.variables)
    }

    /// Sets variables; a `null` removes its variable. Changes nothing if a limit would be exceeded.
    pub fn change_variables(&self, changes: BTreeMap<String, Value>) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_variables(changes))
    }

    /// Sets resources; a `null` removes its resource. Changes nothing if a limit would be exceeded.
    pub fn change_resources(&self, changes: BTreeMap<String, Value>) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_resources(changes))
    }

    /// Changes one resource from its present value; a `null` removes it. Loses no change that
    /// another call makes at the same time. Changes nothing if a limit would be exceeded.
    pub fn change_resource(
        &self,
        name: &str,
        change: impl FnOnce(Option<&Value>) -> Value,
    ) -> Result<(), EnvironmentError> {
        self.change(|values| {
            let changed = change(values.resources.get(name));
            values.with_resources(BTreeMap::from([(name.to_owned(), changed)]))
        })
    }

    /// Makes the changes that lead from `before` to `after`. Changes that were made since `before`
    /// survive.
    pub fn change_values(&self, before: &EnvironmentValues, after: &EnvironmentValues) -> Result<(), EnvironmentError> {
        self.change(|values| values.with_changes(before, after))
    }

    fn change(&self, make: impl FnOnce(EnvironmentValues) -> EnvironmentValues) -> Result<(), EnvironmentError> {
        let mut current = self.current.lock();
        let changed = make(current.values.clone());
        if changed == current.values {
            return Ok(());
        }
        changed.check_changes(&current.values)?;
        current.values = changed;
        current.revision += 1;
        Ok(())
    }

    /// Returns the state of the shell, if a command has run.
    pub fn shell(&self) -> Option<ShellState> {
        self.current.lock().shell.clone()
    }

    /// Sets the state of the shell.
    pub fn set_shell(&self, shell: ShellState) {
        let mut current = self.current.lock();
        if current.shell.as_ref() != Some(&shell) {
            current.shell = Some(shell);
            current.revision += 1;
        }
    }

    /// Returns the files as they are now. Later changes do not show in the returned tree. Does not
    /// see changes by background jobs since [`refresh`](Self::refresh).
    pub fn tree(&self) -> Tree {
        self.current.lock().tree.clone()
    }

    /// Returns the background jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Finds the changes by background jobs. Returns the files that can't be part of the tree. Does
    /// not wait for a writer at work, who does the same at its end.
    pub async fn refresh(&self) -> Result<SkippedFiles, EnvironmentError> {
        let _refreshing = self.refreshing.lock().await;
        match self.writer.try_lock() {
            Ok(mut checkout) => self.rescan(&mut checkout).await,
            Err(_) => Ok(SkippedFiles::default()),
        }
    }

    /// Returns files with what is at an ephemeral path, if a command has left something there. Does
    /// not wait for a writer at work. `is_read` decides by path and size which files are read. Only
    /// the size is known of the others.
    pub async fn with_ephemeral(
        &self,
        tree: &Tree,
        path: &FilePath,
        is_read: fn(&FilePath, u64) -> bool,
    ) -> Result<Tree, EnvironmentError> {
        match self.writer.try_lock().as_deref() {
            Ok(Some(checkout)) => checkout
                .with_ephemeral(tree, path, is_read)
                .await
                .map_err(EnvironmentError::Ephemeral),
            _ => Ok(tree.clone()),
        }
    }

    /// Returns the topmost ephemeral files and directories that commands have left below a
    /// directory, or in the whole workspace.
    pub fn ephemeral(&self, directory: Option<&FilePath>) -> Vec<String> {
        let checkout = self.writer.try_lock();
        let Ok(Some(checkout)) = checkout.as_deref() else {
            return Vec::new();
        };
        let prefix = directory.map_or_else(String::new, |directory| format!("{directory}/"));
        let below = checkout.ephemeral().filter(|path| path.starts_with(&prefix));
        below.map(str::to_owned).collect()
    }

    /// Waits until no other writer changes the files, then begins a change.
    pub async fn edit(&self) -> Result<WorkspaceEdit<'_>, EnvironmentError> {
        let mut checkout = self.writer.lock().await;
        self.rescan(&mut checkout).await?;
        Ok(WorkspaceEdit {
            tree: self.tree().at(self.now()),
            environment: self,
            checkout,
        })
    }

    /// Finds the changes by jobs in the directory. A directory that can't be read is given up with
    /// its jobs.
    async fn rescan(&self, directory: &mut Option<Checkout>) -> Result<SkippedFiles, EnvironmentError> {
        // Taken out, so that it is also given up if this future is dropped.
        let Some(mut checkout) = directory.take() else {
            // An earlier call has given it up.
            if self.jobs.are_running() {
                self.jobs.stop().await;
            }
            return Ok(SkippedFiles::default());
        };
        if !checkout.is_live() {
            *directory = Some(checkout);
            return Ok(SkippedFiles::default());
        }
        // Read before the scan: the scan after the end of a job finds all of its files.
        let are_running = self.jobs.are_running();
        match checkout.rescan(are_running).await {
            Ok(scanned) => {
                *directory = Some(checkout);
                let mut current = self.current.lock();
                if !current.tree.is_same(&scanned.tree) {
                    current.tree = scanned.tree;
                    current.revision += 1;
                }
                Ok(scanned.skipped)
            }
            Err(error) => {
                self.jobs.stop().await;
                Err(EnvironmentError::Directory(error))
            }
        }
    }

    /// Kills the background jobs and stores new files at the end of a run, and returns the state
    /// that restores an equal environment. The directory of the run's commands gets the files as
    /// they are now, since the next run can only continue with it then.
    ///
    /// If jobs have left more files than a workspace may have, the state has the files as they were
    /// last found, and the log says so.
    pub async fn export(&self) -> Result<EnvironmentState, EnvironmentError> {
        self.jobs.stop().await;
        let mut directory = self.writer.lock().await;
        match self.rescan(&mut directory).await {
            Err(EnvironmentError::Directory(error)) if error.exceeds_limits() => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "what background jobs have written since the last call is not part of the session"
                );
            }
            scanned => drop(scanned?),
        }
        let (state, _) = self.export_with_revision().await?;
        let checkout = directory.take();
        if let Some(mut checkout) = checkout
            && let Err(error) = checkout.update(&self.tree()).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "a directory of a run can't be brought up to date, and is removed"
            );
        }
        Ok(state)
    }

    /// Exports the environment, with the revision that the exported state has.
    pub async fn export_with_revision(&self) -> Result<(EnvironmentState, u64), EnvironmentError> {
        let current = self.current.lock().clone();
        let tree = current.tree.save().await?;
        // If the files have not changed meanwhile, the stored ones need not stay in memory.
        let mut now = self.current.lock();
        if now.revision == current.revision {
            now.tree = tree.clone();
        }
        drop(now);
        let revision = current.revision;
        Ok((Current { tree, ..current }.into_state(), revision))
    }

    /// Returns the state without storing anything. Files that are not stored yet are missing from
    /// it.
    pub fn stored_state(&self) -> EnvironmentState {
        self.current.lock().clone().into_state()
    }

    /// Returns an environment with the same values and files. Changes of either do not show in the
    /// other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let current = self.current.lock().clone();
        Self::of(Current { revision: 0, ..current }, self.jobs.of_same_run()).with_clock(self.clock.clone())
    }

    /// Restores another state, with the contents and the limits of this environment.
    #[must_use]
    pub fn again(&self, state: EnvironmentState) -> Self {
        let (contents, limits) = self.current.lock().tree.source();
        Self {
            jobs: self.jobs.of_same_run(),
            clock: self.clock.clone(),
            ..Self::restore(state, contents, limits)
        }
    }

    /// Returns an environment with the same values and without files.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let current = self.current.lock().clone();
        let tree = current.tree.emptied();
        let current = Current {
            revision: 0,
            shell: None,
            tree,
            ..current
        };
        Self::of(current, self.jobs.of_same_run()).with_clock(self.clock.clone())
    }
}

impl Current {
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
    /// The directory that commands use.
    checkout: MutexGuard<'a, Option<Checkout>>,
}

impl WorkspaceEdit<'_> {
    /// Takes the directory that commands use, if one was made.
    pub fn take_checkout(&mut self) -> Option<Checkout> {
        self.checkout.take()
    }

    /// Returns files with what is at an ephemeral path, if a command has left something there.
    pub async fn with_ephemeral(&self, tree: &Tree, path: &FilePath) -> Result<Tree, EnvironmentError> {
        match &*self.checkout {
            Some(checkout) => checkout
                .with_ephemeral(tree, path, |_, _| true)
                .await
                .map_err(EnvironmentError::Ephemeral),
            None => Ok(tree.clone()),
        }
    }

    /// Puts the directory back, for the next command of the run.
    pub fn put_checkout(&mut self, checkout: Checkout) {
        *self.checkout = Some(checkout);
    }

    /// Replaces the files. Stores large new contents at once, so a failure of the store changes
    /// nothing. Background jobs see the new files at once.
    pub async fn finish(mut self, tree: Tree) -> Result<(), EnvironmentError> {
        let is_live = self.checkout.as_ref().is_some_and(Checkout::is_live);
        let tree = if is_live || tree.unsaved_bytes() > MAX_UNSAVED_BYTES {
            tree.save().await?
        } else {
            tree
        };
        // Taken out, so that it is given up if it is written in part only.
        if is_live && let Some(mut checkout) = self.checkout.take() {
            checkout.update(&tree).await.map_err(EnvironmentError::Directory)?;
            *self.checkout = Some(checkout);
        }
        let mut current = self.environment.current.lock();
        current.tree = tree;
        current.revision += 1;
        Ok(())
    }
}

impl Drop for WorkspaceEdit<'_> {
    /// Jobs end with their directory.
    fn drop(&mut self) {
        if self.checkout.is_none() {
            self.environment.jobs.cancel();
        }
    }
}
