//! Many readers of the events of runs that other processes work on: how late an event reaches its
//! reader, and what the readers cost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::client::{Ask, Client};
use crate::mock::SLOW;
use crate::report::{Report, megabytes, milliseconds};
use crate::sample::Sample;
use crate::service::{Launcher, Service};

/// How many readers each run has.
const READERS_PER_RUN: usize = 10;

/// What is needed of an event.
#[derive(Debug, Deserialize)]
struct Event {
    sequence: u64,
    time: DateTime<Utc>,
    #[serde(rename = "type")]
    name: String,
}

/// Measures readers at a process that works on no run itself.
pub(crate) async fn measure(
    launcher: &Launcher,
    url: &str,
    redis: &str,
    readers: usize,
    report: &mut Report,
) -> Result<()> {
    let door = start(launcher, url, redis, "api").await?;
    let worker = start(launcher, url, redis, "worker").await?;
    door.client.put_agent().await?;
    let at_rest = door.memory()?.resident;
    let begun = Instant::now();
    let mut reading = JoinSet::new();
    for _ in 0..readers / READERS_PER_RUN {
        let ask = Ask {
            base: None,
            input: "What is the weather like?",
            provider: SLOW,
        };
        let run_id = door.client.enqueue(ask).await?;
        for _ in 0..READERS_PER_RUN {
            reading.spawn(read(door.client.clone(), run_id));
        }
    }
    let (mut delays, mut peak) = (Vec::new(), 0);
    while let Some(ended) = reading.join_next().await {
        delays.append(&mut ended??);
        peak = peak.max(door.memory()?.peak);
    }
    let window = begun.elapsed();
    worker.stop().await?;
    door.stop().await?;
    let events = delays.len();
    let delays = Sample::new(window, delays);
    let words = format!(
        "p50 {}, p99 {} ({:.0} events/s read, {events} in all)",
        milliseconds(delays.median()),
        milliseconds(delays.percentile(99)),
        delays.per_second()
    );
    report.add(
        format!("{readers} readers of streams: from the event to its reader"),
        words,
    );
    let words = format!("{} at the peak, {} at rest", megabytes(peak), megabytes(at_rest));
    report.add(format!("{readers} readers of streams: memory of their process"), words);
    Ok(())
}

async fn start(launcher: &Launcher, url: &str, redis: &str, role: &str) -> Result<Service> {
    let settings = [
        ("AGENT_RUNTIME__QUEUE__ROLE", role),
        ("AGENT_RUNTIME__BOARD__URL", redis),
    ];
    launcher.start_with(url, &settings).await
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
