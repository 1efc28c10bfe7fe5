//! Puts load on the real binary and prints what it measured next to the machine's own limits and
//! the aims.
//!
//!     scripts/bench
//!
//! The service runs as a child process; the model server and all clients are in this process, and
//! everything is on loopback. So on a small machine they compete with the service and the database
//! for the cores: the figures are what is left for the service.

mod binary;
mod bytes_written;
mod client;
mod crowd;
mod depth;
mod driver;
mod first_token;
mod mock;
mod postgres;
mod procfs;
mod queue;
mod readers;
mod report;
mod rest;
mod sample;
mod service;
mod sqlite;
mod throughput;
mod wire_counter;
mod worst_tenant;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};

use crate::mock::{MockModel, Pace};
use crate::postgres::PostgresDatabase;
use crate::report::{Report, progress};
use crate::service::Launcher;
use crate::sqlite::SqliteDatabase;

/// Measures the service under load.
#[derive(Debug, Parser)]
struct Options {
    /// The service; build it with `cargo build --profile dist`.
    #[arg(long, default_value = "target/dist/agent-runtime")]
    binary: PathBuf,
    /// A PostgreSQL server and a user who may create databases on it:
    /// `postgres://USER:PASSWORD@HOST:PORT/postgres`.
    #[arg(long)]
    postgres: Option<String>,
    /// Measures the embedded store too, or alone when no server is given.
    #[arg(long)]
    sqlite: bool,
    /// Clients at the same time.
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// How long each throughput is measured.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Tokens of each completion.
    #[arg(long, default_value_t = 16)]
    tokens: usize,
    /// The model's pause before each further token where it speaks slowly.
    #[arg(long, default_value_t = 5)]
    token_pause_ms: u64,
    /// How many turns the longest conversation has.
    #[arg(long, default_value_t = 10_000)]
    depth: u64,
    /// How many streaming runs are open at once.
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// A Redis server, for readers at one replica of what another one does.
    #[arg(long)]
    redis: Option<String>,
    /// How many runs wait in the queue before workers drain it.
    #[arg(long, default_value_t = 10_000)]
    queued: usize,
    /// How many readers of events there are at once.
    #[arg(long, default_value_t = 1000)]
    readers: usize,
    /// How many messages of 9 MB the session has that the worst tenant reads.
    #[arg(long, default_value_t = 29)]
    large_messages: usize,
    /// Measures only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Measures only those ways of the worst tenant whose description has this text.
    #[arg(long, default_value = "")]
    way: String,
    /// Prints the table as Markdown.
    #[arg(long)]
    markdown: bool,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Rest,
    Throughput,
    Bytes,
    FirstToken,
    Crowd,
    Queue,
    Readers,
    Depth,
    WorstTenant,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn window(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(
        options.postgres.is_some() || options.sqlite,
        "give --postgres URL, --sqlite or both"
    );
    let files = procfs::open_files_limit()?;
    let needed = 2 * u64::try_from(options.streams.max(options.readers))? + 200;
    ensure!(
        files >= needed,
        "{files} open files are allowed and {needed} are needed; see ulimit -n"
    );
    let pace = Pace {
        tokens: options.tokens,
        first: Duration::from_millis(20),
        next: Duration::from_millis(options.token_pause_ms),
    };
    let mock = MockModel::start(pace).await?;
    let http = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(options.streams)
        .build()?;
    let launcher = Launcher::new(&options.binary, &mock, http.clone())?;
    let mut report = Report::new(options.markdown);
    progress(&procfs::machine()?);
    report.add("machine", procfs::machine()?);
    if let Some(url) = &options.postgres {
        let database = PostgresDatabase::create(url, options.clients).await?;
        let measured = on_postgres(&options, &database, &launcher, &mock, &http, &mut report).await;
        database.remove().await?;
        measured?;
    }
    if options.sqlite {
        on_sqlite(&options, &launcher, &mock, &http, &mut report).await?;
    }
    report.print();
    Ok(())
}

async fn on_postgres(
    options: &Options,
    database: &PostgresDatabase,
    launcher: &Launcher,
    mock: &MockModel,
    http: &reqwest::Client,
    report: &mut Report,
) -> Result<()> {
    report.add("store", database.describe().await?);
    let url = database.url(None);
    if options.wants(Part::Rest) {
        rest::measure(launcher, &url, report).await?;
    }
    if options.wants(Part::Throughput) {
        let limit_before = database.commit_limit(options.clients, options.window() / 2).await?;
        let model = throughput::model_limit(mock, http, options).await?;
        let runs = throughput::measure(launcher, &url, options).await?;
        let limit_after = database.commit_limit(options.clients, options.window() / 2).await?;
        let bytes = usize::try_from(database.row_bytes(runs.last_session).await?)?;
        let driver = driver::cpu_per_statement(database, options.clients, options.window() / 2, bytes).await?;
        throughput::report(&runs, &model, &[limit_before, limit_after], Some(driver), report);
    }
    if options.wants(Part::Bytes) {
        bytes_written::measure(launcher, database, report).await?;
    }
    if options.wants(Part::FirstToken) {
        first_token::measure(launcher, mock, &url, options.clients, report).await?;
    }
    if options.wants(Part::Crowd) {
        crowd::measure(launcher, mock, &url, options.streams, report).await?;
    }
    if options.wants(Part::Queue) {
        queue::measure(launcher, database, (options.queued, options.clients), report).await?;
    }
    if let (true, Some(redis)) = (options.wants(Part::Readers), &options.redis) {
        readers::measure(launcher, &url, redis, options.readers, report).await?;
    }
    if options.wants(Part::Depth) {
        depth::measure(launcher, mock, database, options.depth, report).await?;
    }
    // The last one, since its keys are asked for from then on.
    if options.wants(Part::WorstTenant) {
        let extent = (options.large_messages, options.window() / 2);
        worst_tenant::measure(launcher, mock, &url, extent, &options.way, report).await?;
    }
    Ok(())
}

async fn on_sqlite(
    options: &Options,
    launcher: &Launcher,
    mock: &MockModel,
    http: &reqwest::Client,
    report: &mut Report,
) -> Result<()> {
    let database = SqliteDatabase::create()?;
    report.add("store", "SQLite (WAL, synchronous FULL)");
    let url = database.url();
    if options.wants(Part::Rest) {
        rest::measure(launcher, &url, report).await?;
    }
    if options.wants(Part::Throughput) {
        let limit_before = database.commit_limit(options.clients, options.window() / 2).await?;
        let model = throughput::model_limit(mock, http, options).await?;
        let runs = throughput::measure(launcher, &url, options).await?;
        let limit_after = database.commit_limit(options.clients, options.window() / 2).await?;
        throughput::report(&runs, &model, &[limit_before, limit_after], None, report);
    }
    if options.wants(Part::FirstToken) {
        first_token::measure(launcher, mock, &url, options.clients, report).await?;
    }
    if options.wants(Part::Crowd) {
        crowd::measure(launcher, mock, &url, options.streams, report).await?;
    }
    Ok(())
}
