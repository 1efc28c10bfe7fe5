//! Memory of the service while many streaming runs are open at once: the model stops within its
//! completion until all of them are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use crate::client::Ask;
use crate::mock::{HELD, MockModel};
use crate::report::{Report, megabytes};
use crate::service::Launcher;

const OPEN_LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(20);
const MEMORY_AIM: u64 = 150 * 1024 * 1024;

/// Measures the peak of a fresh service.
pub(crate) async fn measure(
    launcher: &Launcher,
    mock: &MockModel,
    url: &str,
    streams: usize,
    report: &mut Report,
) -> Result<()> {
    let service = launcher.start(url).await?;
    service.client.put_agent().await?;
    mock.set_gate(false);
    let open = Arc::new(AtomicUsize::new(0));
    let mut runs = JoinSet::new();
    for _ in 0..streams {
        let (client, open) = (service.client.clone(), Arc::clone(&open));
        runs.spawn(async move {
            let ask = Ask {
                base: None,
                input: "What is the weather like?",
                provider: HELD,
            };
            let mut events = client.stream(ask).await?;
            events.until("message.delta").await?;
            open.fetch_add(1, Ordering::Relaxed);
            events.until("run.completed").await
        });
    }
    let began = Instant::now();
    while open.load(Ordering::Relaxed) < streams {
        // A run that ends before the gate opens has failed.
        if let Some(ended) = runs.try_join_next() {
            ended??;
        }
        let number = open.load(Ordering::Relaxed);
        ensure!(
            began.elapsed() < OPEN_LIMIT,
            "{number} of {streams} runs were open after {OPEN_LIMIT:?}"
        );
        tokio::time::sleep(POLL).await;
    }
    let resident = service.memory()?.resident;
    mock.set_gate(true);
    let mut completed = 0;
    while let Some(ended) = runs.join_next().await {
        ended??;
        completed += 1;
    }
    let peak = service.memory()?.peak;
    service.stop().await?;
    report.add(
        format!("memory with {streams} streaming runs open"),
        megabytes(resident),
    );
    report.aim(
        format!("peak memory of {streams} concurrent streaming runs, {completed} of them completed"),
        megabytes(peak),
        "< 150 MB",
        peak < MEMORY_AIM && completed == streams,
    );
    Ok(())
}
