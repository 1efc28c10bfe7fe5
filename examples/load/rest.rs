//! How soon the service is ready and how little memory it needs when nothing happens.

use std::time::Duration;

use anyhow::Result;

use crate::report::{Report, megabytes, milliseconds};
use crate::sample::Sample;
use crate::service::Launcher;

const STARTS: usize = 5;
const IDLE: Duration = Duration::from_secs(2);
const READY_AIM: Duration = Duration::from_millis(100);
const MEMORY_AIM: u64 = 30 * 1024 * 1024;

/// Measures several starts on a store that is migrated before.
pub(crate) async fn measure(launcher: &Launcher, url: &str, report: &mut Report) -> Result<()> {
    let first = launcher.start(url).await?;
    report.add(
        "ready, first start on an empty database",
        milliseconds(first.ready_after),
    );
    first.stop().await?;
    let mut ready = Vec::new();
    let mut resident = Vec::new();
    for _ in 0..STARTS {
        let service = launcher.start(url).await?;
        ready.push(service.ready_after);
        tokio::time::sleep(IDLE).await;
        resident.push(service.memory()?.resident);
        service.stop().await?;
    }
    let ready = Sample::new(IDLE, ready).median();
    report.aim(
        "ready, median of 5 starts",
        milliseconds(ready),
        "< 100 ms",
        ready < READY_AIM,
    );
    resident.sort_unstable();
    let resident = resident[STARTS / 2];
    report.aim(
        "memory at rest, median of 5 starts",
        megabytes(resident),
        "< 30 MB",
        resident < MEMORY_AIM,
    );
    Ok(())
}
