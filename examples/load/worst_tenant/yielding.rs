//! Threads that run only while nothing else wants the processor.

use std::fs::read_link;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::{Builder, Handle};

use crate::report::progress;

/// Starts threads, which end with the process, for the callers of the worst tenant and the model
/// server that serves it, as if these were on a machine of their own: what they do themselves is
/// not what is measured.
pub(super) fn runtime() -> Result<Handle> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(|| {
            if let Err(error) = yield_to_all() {
                progress(&format!("the callers of the worst tenant don't yield: {error:#}"));
            }
        })
        .build()?;
    // To drop it is an error here, also where something else fails.
    Ok(Box::leak(Box::new(runtime)).handle().clone())
}

/// Gives this thread the scheduling policy `SCHED_IDLE`. A higher niceness would not do: a thread
/// that wakes up waits for one that is merely nicer until the kernel's next tick.
pub(super) fn yield_to_all() -> Result<()> {
    let thread = read_link("/proc/thread-self")?;
    let id = thread.file_name().context("a thread's id")?;
    let chrt = Command::new("chrt").args(["--idle", "--pid", "0"]).arg(id).status();
    let status = chrt.context("chrt")?;
    ensure!(status.success(), "chrt: {status}");
    Ok(())
}
