//! How soon the service is ready and how little memory it needs when nothing happens.

use std::time::Duration;

use anyhow::Result;

use crate::bench::Bench;
use crate::report::{Report, megabytes, milliseconds};

const STARTS: usize = 5;
const IDLE: Duration = Duration::from_secs(2);

/// Measures the first start on an empty database, and several that find it migrated.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let first = bench.start().await?;
    report.add("created the tables and is up", milliseconds(first.ready_after), "ms");
    first.stop().await?;
    for _ in 0..STARTS {
        let service = bench.start().await?;
        report.add("ready", milliseconds(service.ready_after), "ms");
        tokio::time::sleep(IDLE).await;
        report.add("memory at rest", megabytes(service.memory()?.resident), "MB");
        service.stop().await?;
    }
    Ok(())
}
