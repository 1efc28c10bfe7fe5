//! Threads that compute all the time: what the light requests lose beside them, the machine costs
//! them, and no tenant.

use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, spawn};

use super::yielding::yield_to_all;
use crate::report::progress;

/// Who goes first where a core is wanted by a computing thread and by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// Both are equal to the kernel.
    Equal,
    /// The other one, always and at once.
    Yielding,
}

/// One computing thread for each core, until this is dropped.
#[derive(Debug)]
pub(super) struct BusyCores {
    stop: Arc<AtomicBool>,
}

impl BusyCores {
    pub(super) fn start(priority: Priority) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..available_parallelism().map_or(1, NonZeroUsize::get) {
            let stop = Arc::clone(&stop);
            spawn(move || {
                if priority == Priority::Yielding
                    && let Err(error) = yield_to_all()
                {
                    progress(&format!("a computing thread does not yield: {error:#}"));
                }
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        Self { stop }
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
