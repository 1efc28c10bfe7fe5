//! Many readers of the events of runs that other processes work on: how late an event reaches its
//! reader, and what the readers cost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::bench::Bench;
use crate::client::{Ask, Client};
use crate::mock::SLOW;
use crate::report::{Report, megabytes, milliseconds};
use crate::sample::Sample;
use crate::service::Service;

/// How many readers each run has.
const READERS_PER_RUN: usize = 10;

/// The needed part of an event.
#[derive(Debug, Deserialize)]
struct Event {
    sequence: u64,
    time: DateTime<Utc>,
    #[serde(rename = "type")]
    name: String,
}

/// Measures readers at a process that works on no run itself.
pub(crate) async fn measure(bench: &Bench<'_>, redis: &str, report: &mut Report<'_>) -> Result<()> {
    let readers = bench.options.readers;
    let door = start(bench, redis, "api").await?;
    let worker = start(bench, redis, "worker").await?;
    door.client.put_agent(&[]).await?;
    let begun = Instant::now();
    let mut reading = JoinSet::new();
    for _ in 0..readers / READERS_PER_RUN {
        let run_id = door.client.enqueue(Ask::of(SLOW)).await?;
        for _ in 0..READERS_PER_RUN {
            reading.spawn(read(door.client.clone(), run_id));
        }
    }
    let mut delays = Vec::new();
    while let Some(ended) = reading.join_next().await {
        delays.append(&mut ended??);
    }
    let delays = Sample::new(begun.elapsed(), delays);
    let peak = door.memory()?.peak;
    worker.stop().await?;
    door.stop().await?;
    let name = format!("{readers} readers of streams");
    for percent in [50, 99] {
        let delay = milliseconds(delays.percentile(percent));
        report.add(format!("{name}: from the event to its reader, p{percent}"), delay, "ms");
    }
    report.add(format!("{name}: events read"), delays.per_second(), "per second");
    report.add(format!("{name}: peak memory of their process"), megabytes(peak), "MB");
    Ok(())
}

async fn start(bench: &Bench<'_>, redis: &str, role: &str) -> Result<Service> {
    let settings = [
        ("AGENT_RUNTIME__QUEUE__ROLE", role),
        ("AGENT_RUNTIME__BOARD__URL", redis),
    ];
    let url = bench.database.url();
    bench.launcher.start_with(&url, &settings).await
}

/// Reads a run from its first to its terminal event; returns how late each event was that came
/// while it was read.
async fn read(client: Client, run_id: Uuid) -> Result<Vec<Duration>> {
    let began = Utc::now();
    let mut chunks = client.events(run_id).await?;
    let mut buffer = Vec::new();
    let (mut delays, mut last) = (Vec::new(), 0);
    loop {
        let chunk = chunks.next().await.context("a stream without a terminal event")??;
        let now = Utc::now();
        buffer.extend_from_slice(&chunk);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let Some(data) = line.strip_prefix(b"data: ") else {
                continue;
            };
            let event: Event = serde_json::from_slice(data).context("an event")?;
            ensure!(event.sequence == last + 1, "event {} came after {last}", event.sequence);
            last = event.sequence;
            if event.time >= began {
                delays.push((now - event.time).to_std().unwrap_or_default());
            }
            if matches!(
                event.name.as_str(),
                "run.completed" | "run.stopped" | "run.failed" | "run.cancelled"
            ) {
                ensure!(event.name == "run.completed", "a run ended as {}", event.name);
                return Ok(delays);
            }
        }
    }
}
