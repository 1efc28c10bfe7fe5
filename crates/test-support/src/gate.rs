//! A gate that a mock model waits at, so that a test decides when a call continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use crate::wait::until;

/// Holds calls back until it is opened for them.
#[derive(Debug)]
pub struct Gate {
    passes: Semaphore,
    waiting: AtomicUsize,
}

impl Gate {
    /// Makes a closed gate.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            passes: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Lets so many calls pass.
    pub fn open(&self, calls: usize) {
        self.passes.add_permits(calls);
    }

    /// Waits until exactly so many calls wait.
    pub async fn until_waiting(&self, calls: usize) {
        until("so many calls never waited", async || {
            self.waiting.load(Ordering::SeqCst) == calls
        })
        .await;
    }

    /// Waits for a pass.
    pub(crate) async fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        self.passes.acquire().await.unwrap().forget();
    }
}

/// A call that waits; dropped also when its caller goes away.
struct Waiting<'a>(&'a Gate);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
