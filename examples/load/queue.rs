//! The queue under load: a heap of runs that workers drain, then runs that come no faster than the
//! workers are.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::{Ask, Client, RunAnswer};
use crate::mock::FAST;
use crate::postgres::PostgresDatabase;
use crate::report::{Report, milliseconds, progress};
use crate::sample::{Sample, count};
use crate::service::{Launcher, Service};
use crate::wire_counter::WireCounter;

const WORKERS: usize = 3;
const DRAIN_LIMIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(20);
/// How long runs come no faster than they are worked on, and which part of the drained rate they
/// have.
const STEADY: Duration = Duration::from_secs(10);
const STEADY_SHARE: f64 = 0.5;
/// The runs whose statements are counted on the wire.
const COUNTED: usize = 1000;

/// Measures a heap of runs, a steady flow, and what both ask of the database.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let (database, url) = (bench.database.postgres()?, bench.database.url());
    let runs = bench.options.queued;
    let door = start(bench.launcher, &url, "api").await?;
    door.client.put_agent(&[]).await?;
    let (accepting, heap) = accept(&door.client, runs).await?;
    let name = format!("{runs} runs accepted, {CLIENTS} clients");
    report.add(format!("{name}: rate"), accepting.per_second(), "runs/s");
    report.add(format!("{name}: p99"), milliseconds(accepting.percentile(99)), "ms");

    let begun = Instant::now();
    let before = bench.cpu_times(&[])?;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(start(bench.launcher, &url, "worker").await?);
    }
    empty(database).await?;
    let rate = count(runs) / begun.elapsed().as_secs_f64();
    let working: Vec<&Service> = workers.iter().collect();
    let cpu = before.per_run(bench.cpu_times(&working)?, runs);
    let name = format!("{runs} runs drained by {WORKERS} workers");
    report.add(format!("{name}: rate"), rate, "runs/s").cpu_per_run(cpu);
    add_waits(&format!("{name}: time in the queue"), &door.client, heap, report).await?;

    let flow = rate * STEADY_SHARE;
    progress(&format!("a flow of {flow:.0} runs/s"));
    let flowing = send_steadily(&door.client, flow).await?;
    empty(database).await?;
    let name = "runs come at half that rate: time in the queue";
    add_waits(name, &door.client, flowing, report).await?;
    for service in workers.into_iter().chain([door]) {
        service.stop().await?;
    }
    count_statements(bench.launcher, database, report).await
}

/// Counts on the wire, with processes of their own, so that the rates above have no proxy in their
/// way.
async fn count_statements(launcher: &Launcher, database: &PostgresDatabase, report: &mut Report<'_>) -> Result<()> {
    let at_door = WireCounter::start(database.address()).await?;
    let at_worker = WireCounter::start(database.address()).await?;
    let door = start(launcher, &database.url(Some(at_door.port)), "api").await?;
    let from = at_door.passed();
    let (_, runs) = accept(&door.client, COUNTED).await?;
    let accepted = at_door.passed();
    let worker = start(launcher, &database.url(Some(at_worker.port)), "worker").await?;
    empty(database).await?;
    let worked = at_worker.passed();
    worker.stop().await?;
    results(&door.client, runs).await?;
    door.stop().await?;
    let mut add = |what: &str, number: u64| {
        let per_run = count(usize::try_from(number).unwrap_or_default()) / count(COUNTED);
        report.add(format!("queued run of one step: {what}"), per_run, "");
    };
    add("statements to accept it", accepted.executions - from.executions);
    add("statements to work on it", worked.executions);
    add("round trips to accept it", accepted.round_trips - from.round_trips);
    add("round trips to work on it", worked.round_trips);
    Ok(())
}

async fn start(launcher: &Launcher, url: &str, role: &str) -> Result<Service> {
    launcher.start_with(url, &[("AGENT_RUNTIME__QUEUE__ROLE", role)]).await
}

/// Has so many runs accepted. Returns how long that took each, and their ids.
async fn accept(client: &Client, runs: usize) -> Result<(Sample, Vec<Uuid>)> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..CLIENTS {
        let client = client.clone();
        let share = runs / CLIENTS + usize::from(number < runs % CLIENTS);
        tasks.spawn(async move {
            let mut accepted = Vec::with_capacity(share);
            for _ in 0..share {
                let start = Instant::now();
                let run_id = client.enqueue(Ask::of(FAST)).await?;
                accepted.push((start.elapsed(), run_id));
            }
            anyhow::Ok(accepted)
        });
    }
    let mut accepted = Vec::with_capacity(runs);
    while let Some(ended) = tasks.join_next().await {
        accepted.append(&mut ended??);
    }
    let (times, ids) = accepted.into_iter().unzip();
    Ok((Sample::new(begun.elapsed(), times), ids))
}

/// Has runs accepted at a rate, and returns their ids.
async fn send_steadily(client: &Client, per_second: f64) -> Result<Vec<Uuid>> {
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    while begun.elapsed() < STEADY {
        ticks.tick().await;
        let client = client.clone();
        tasks.spawn(async move { client.enqueue(Ask::of(FAST)).await });
    }
    tasks.join_all().await.into_iter().collect()
}

/// Waits until the queue is empty.
async fn empty(database: &PostgresDatabase) -> Result<()> {
    let begun = Instant::now();
    while database.queue_length().await? > 0 {
        ensure!(
            begun.elapsed() < DRAIN_LIMIT,
            "the queue is not empty after {DRAIN_LIMIT:?}"
        );
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Reads the results of runs, all of which must have completed.
async fn results(client: &Client, runs: Vec<Uuid>) -> Result<Vec<RunAnswer>> {
    let results = stream::iter(runs).map(|run_id| client.result(run_id));
    results.buffer_unordered(CLIENTS).try_collect().await
}

async fn add_waits(name: &str, client: &Client, runs: Vec<Uuid>, report: &mut Report<'_>) -> Result<()> {
    let results = results(client, runs).await?;
    let waits = results.iter().map(RunAnswer::waited).collect::<Result<_>>()?;
    let waits = Sample::new(Duration::ZERO, waits);
    for percent in [50, 99] {
        let wait = milliseconds(waits.percentile(percent));
        report.add(format!("{name}, p{percent}"), wait, "ms");
    }
    Ok(())
}
