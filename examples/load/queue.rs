//! The queue under load: a heap of runs that workers drain, then runs that come no faster than the
//! workers are.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::client::{Ask, Client};
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
pub(crate) async fn measure(
    launcher: &Launcher,
    database: &PostgresDatabase,
    (runs, clients): (usize, usize),
    report: &mut Report,
) -> Result<()> {
    let url = database.url(None);
    let door = start(launcher, &url, "api").await?;
    door.client.put_agent().await?;
    let accepting = accept(&door.client, runs, clients).await?;
    let words = format!(
        "{:.0}/s, p50 {}, p99 {}",
        accepting.per_second(),
        milliseconds(accepting.median()),
        milliseconds(accepting.percentile(99))
    );
    report.add(format!("queue: {runs} runs accepted, {clients} clients"), words);

    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(start(launcher, &url, "worker").await?);
    }
    drained(database, runs).await?;
    let rate = count(runs) / begun.elapsed().as_secs_f64();
    report.add(
        format!("queue: {runs} runs drained by {WORKERS} workers, their start included"),
        format!("{rate:.0} runs/s"),
    );
    add_waits("queue: time in the queue of those", database, 0, report).await?;

    let flow = rate * STEADY_SHARE;
    progress(&format!("a flow of {flow:.0} runs/s"));
    let sent = send_steadily(&door.client, flow).await?;
    drained(database, runs + sent).await?;
    let figure = format!("queue: time in the queue at {flow:.0} runs/s, half of that");
    add_waits(&figure, database, runs, report).await?;
    for service in workers.into_iter().chain([door]) {
        service.stop().await?;
    }
    count_statements(launcher, database, runs + sent, clients, report).await
}

/// Counts on the wire, with processes of their own, so that the rates above have no proxy in their
/// way.
async fn count_statements(
    launcher: &Launcher,
    database: &PostgresDatabase,
    before: usize,
    clients: usize,
    report: &mut Report,
) -> Result<()> {
    let (at_door, at_worker) = (
        WireCounter::start(database.address()).await?,
        WireCounter::start(database.address()).await?,
    );
    let door = start(launcher, &database.url(Some(at_door.port)), "api").await?;
    let from = at_door.passed();
    accept(&door.client, COUNTED, clients).await?;
    let accepted = at_door.passed();
    let worker = start(launcher, &database.url(Some(at_worker.port)), "worker").await?;
    drained(database, before + COUNTED).await?;
    let worked = at_worker.passed();
    worker.stop().await?;
    door.stop().await?;
    let per_run = |number: u64| count(usize::try_from(number).unwrap_or_default()) / count(COUNTED);
    let words = format!(
        "{:.1} ({:.1} round trips) to accept it, {:.1} ({:.1} round trips) to work on it",
        per_run(accepted.executions - from.executions),
        per_run(accepted.round_trips - from.round_trips),
        per_run(worked.executions),
        per_run(worked.round_trips),
    );
    report.add("queue: database statements per run of one step", words);
    Ok(())
}

async fn start(launcher: &Launcher, url: &str, role: &str) -> Result<Service> {
    launcher.start_with(url, &[("AGENT_RUNTIME__QUEUE__ROLE", role)]).await
}

/// Has so many runs accepted.
async fn accept(client: &Client, runs: usize, clients: usize) -> Result<Sample> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let client = client.clone();
        let share = runs / clients + usize::from(number < runs % clients);
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(share);
            for _ in 0..share {
                let start = Instant::now();
                client.enqueue(ask()).await?;
                times.push(start.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::with_capacity(runs);
    while let Some(ended) = tasks.join_next().await {
        times.append(&mut ended??);
    }
    Ok(Sample::new(begun.elapsed(), times))
}

/// Has runs accepted at a rate, and returns how many.
async fn send_steadily(client: &Client, per_second: f64) -> Result<usize> {
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    while begun.elapsed() < STEADY {
        ticks.tick().await;
        let client = client.clone();
        tasks.spawn(async move { client.enqueue(ask()).await });
    }
    let sent = tasks.len();
    while let Some(ended) = tasks.join_next().await {
        let _: Uuid = ended??;
    }
    Ok(sent)
}

fn ask() -> Ask<'static> {
    Ask {
        base: None,
        input: "What is the weather like?",
        provider: FAST,
    }
}

/// Waits until the queue is empty and so many runs have completed.
async fn drained(database: &PostgresDatabase, runs: usize) -> Result<()> {
    let begun = Instant::now();
    while database.queue_length().await? > 0 {
        ensure!(
            begun.elapsed() < DRAIN_LIMIT,
            "the queue is not empty after {DRAIN_LIMIT:?}"
        );
        tokio::time::sleep(POLL).await;
    }
    let completed = database.queued_runs_completed().await?;
    ensure!(completed == runs, "{completed} of {runs} runs have completed");
    Ok(())
}

async fn add_waits(figure: &str, database: &PostgresDatabase, skipped: usize, report: &mut Report) -> Result<()> {
    let waits = Sample::new(Duration::ZERO, database.queue_waits(skipped).await?);
    let words = format!(
        "p50 {}, p95 {}, p99 {}",
        milliseconds(waits.median()),
        milliseconds(waits.percentile(95)),
        milliseconds(waits.percentile(99))
    );
    report.add(figure, words);
    Ok(())
}
