//! Processors that are held, so that other work of the same tenant waits for them.

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread::available_parallelism;

use tasks::off_thread::off_thread;
use tokio::sync::mpsc::unbounded_channel;
use values::tenant::TenantId;

/// The processors of a tenant; dropping it releases them.
#[derive(Debug)]
#[must_use = "the processors are released when it is dropped"]
pub struct HeldProcessors {
    _releases: Vec<mpsc::Sender<()>>,
}

impl HeldProcessors {
    /// Waits until all processors that the tenant may have are held.
    pub async fn of(tenant: &TenantId) -> Self {
        let share = available_parallelism().map_or(2, NonZeroUsize::get).max(2) / 2;
        let (begun, mut begins) = unbounded_channel();
        let mut releases = Vec::new();
        for _ in 0..share {
            let (release, released) = mpsc::channel::<()>();
            let (tenant, begun) = (tenant.clone(), begun.clone());
            tokio::spawn(async move {
                let work = move || {
                    begun.send(()).unwrap();
                    released.recv().unwrap_err()
                };
                off_thread(&tenant, work).await
            });
            releases.push(release);
        }
        for _ in 0..share {
            begins.recv().await.unwrap();
        }
        Self { _releases: releases }
    }
}
