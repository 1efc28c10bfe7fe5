//! The commands that a worker runs, and why they are to be stopped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use store::commands::CommandKey;

/// The reason why a command is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The run was cancelled or stopped.
    Cancelled,
    /// Nobody waits for it any more.
    Abandoned,
    /// The worker has no lease for it any more.
    Lost,
    /// The worker shuts down.
    Shutdown,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// Cancelled to stop it.
    pub(super) stop: CancellationToken,
    reason: OnceLock<Reason>,
    is_lost: AtomicBool,
    /// When its lease may have expired.
    expires: Mutex<Instant>,
}

impl Running {
    pub(super) fn new(expires: Instant) -> Arc<Self> {
        Arc::new(Self {
            stop: CancellationToken::new(),
            reason: OnceLock::new(),
            is_lost: AtomicBool::new(false),
            expires: Mutex::new(expires),
        })
    }

    /// Stops the command. The first reason counts.
    pub(super) fn stop(&self, reason: Reason) {
        self.reason.get_or_init(|| reason);
        self.stop.cancel();
    }

    /// Stops the command, since the worker has no lease for it any more.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        self.stop(Reason::Lost);
    }

    /// Returns whether the worker has no lease for it any more, so that it can't write about it.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Returns why it was stopped, if it was.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }

    pub(super) fn renewed(&self, expires: Instant) {
        *self.expires.lock() = expires;
    }

    /// Returns whether the lease may have expired at a time.
    pub(super) fn has_expired(&self, at: Instant) -> bool {
        *self.expires.lock() <= at
    }
}

/// The commands that a worker runs.
#[derive(Debug, Default)]
pub(super) struct AllRunning(Mutex<HashMap<CommandKey, Arc<Running>>>);

/// The entry of a command that runs. A dropped entry leaves the list, also after a panic. Then the
/// lease of the command is not renewed.
#[derive(Debug)]
pub(super) struct Entry {
    all: Arc<AllRunning>,
    key: CommandKey,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

impl AllRunning {
    pub(super) fn add(self: &Arc<Self>, key: CommandKey, running: Arc<Running>) -> Entry {
        self.0.lock().insert(key.clone(), running);
        let all = Arc::clone(self);
        Entry { all, key }
    }

    /// Returns the running commands.
    pub(super) fn list(&self) -> Vec<(CommandKey, Arc<Running>)> {
        let running = self.0.lock();
        running
            .iter()
            .map(|(key, running)| (key.clone(), Arc::clone(running)))
            .collect()
    }
}
