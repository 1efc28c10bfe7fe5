//! Puts load on the real binary and prints what it measured, next to the aims and to the machine's
//! own limits.
//!
//!     scripts/bench
//!
//! Each group of figures is in a file of its own. It is measured several times, each time with an
//! empty database, and the limits are measured between. A group that fails is reported, and the
//! others go on: an older binary may lack what one of them needs.
//!
//! The service runs as a child process; the model server and all clients are in this process, and
//! everything is on loopback. So on a small machine they compete with the service and the database
//! for the cores: the figures are what is left for the service.

mod aims;
mod bench;
mod binary;
mod bytes_written;
mod client;
mod conversation_bytes;
mod cpu;
mod database;
mod depth;
mod durable;
mod first_token;
mod limits;
mod mock;
mod one_turn;
mod postgres;
mod procfs;
mod queue;
mod readers;
mod replicas;
mod report;
mod responses;
mod rest;
mod sample;
mod service;
mod sqlite;
mod streams;
mod tool_steps;
mod wire_counter;
mod words;
mod worst_tenant;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use net::http_client::client_builder;

use crate::bench::Bench;
use crate::database::Engine;
use crate::limits::Machine;
use crate::mock::{MockModel, Pace};
use crate::report::{Format, Report, progress};
use crate::service::Launcher;

/// The clients at the same time, unless a figure says otherwise.
pub(crate) const CLIENTS: usize = 16;

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
    /// A Redis server, for readers at one replica of what another one does.
    #[arg(long)]
    redis: Option<String>,
    /// How often each group is measured.
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// How long each rate is measured, after a warm-up of two seconds.
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
    /// How many runs wait in the queue before workers drain it.
    #[arg(long, default_value_t = 10_000)]
    queued: usize,
    /// How many readers of events there are at once.
    #[arg(long, default_value_t = 1000)]
    readers: usize,
    /// How many messages of 9 MB the session has that the worst tenant reads.
    #[arg(long, default_value_t = 29)]
    large_messages: usize,
    /// Measures only these groups; by default all but the worst tenant, who takes ten minutes.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Group>,
    /// Measures only those ways of the worst tenant whose description has this text.
    #[arg(long, default_value = "")]
    way: String,
    /// How the report is printed.
    #[arg(long, value_enum, default_value = "text", overrides_with = "format")]
    format: Format,
}

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    Rest,
    OneTurn,
    Responses,
    Replicas,
    ToolSteps,
    Durable,
    ConversationBytes,
    BytesWritten,
    FirstToken,
    Streams,
    Queue,
    Readers,
    Depth,
    WorstTenant,
}

impl Options {
    /// Returns the groups to measure on a store.
    fn groups(&self, engine: &Engine) -> impl Iterator<Item = Group> {
        let all = Group::value_variants().iter().copied();
        all.filter(move |group| match (engine, group) {
            (Engine::Sqlite, group) if !group.is_on_sqlite() => false,
            (_, Group::Readers) if self.redis.is_none() => false,
            (_, Group::WorstTenant) => self.only.contains(group),
            _ => self.only.is_empty() || self.only.contains(group),
        })
    }

    fn window(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn engines(&self) -> Vec<Engine> {
        let postgres = self.postgres.clone().map(Engine::Postgres);
        postgres
            .into_iter()
            .chain(self.sqlite.then_some(Engine::Sqlite))
            .collect()
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(!options.engines().is_empty(), "give --postgres URL, --sqlite or both");
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
    let mock = mock::threads()?.spawn(MockModel::start(pace)).await??;
    let http = client_builder()?.pool_max_idle_per_host(options.streams).build()?;
    let launcher = Launcher::new(&options.binary, &mock, http.clone())?;
    let mut failures = 0;
    for engine in options.engines() {
        failures += measure(&options, &engine, &launcher, &mock, &http).await?;
    }
    ensure!(failures == 0, "{failures} groups failed");
    Ok(())
}

/// Measures all groups on an engine, and prints the report. Returns how many groups failed.
async fn measure(
    options: &Options,
    engine: &Engine,
    launcher: &Launcher,
    mock: &MockModel,
    http: &reqwest::Client,
) -> Result<usize> {
    let machine = Machine::new(engine, mock, http).await?;
    let mut report = Report::new(engine, vec![procfs::machine()?, machine.describe().await?]);
    let mut failures = 0;
    for group in options.groups(engine) {
        let mut limits = vec![machine.limits().await?];
        for _ in 0..options.repeats.max(1) {
            let database = engine.create().await?;
            let bench = Bench {
                options,
                launcher,
                mock,
                http,
                database: &database,
            };
            let measured = Box::pin(group.measure(&bench, &mut report)).await;
            database.remove().await?;
            limits.push(machine.limits().await?);
            if let Err(error) = measured {
                progress(&format!("FAILED: {group:?} on {}: {error:#}", engine.name()));
                failures += 1;
                break;
            }
        }
        report.measured_beside(&limits);
    }
    machine.remove().await?;
    report.print(options.format);
    Ok(failures)
}

impl Group {
    fn is_on_sqlite(self) -> bool {
        matches!(
            self,
            Self::Rest | Self::OneTurn | Self::Responses | Self::FirstToken | Self::Streams
        )
    }

    /// Measures the group once.
    async fn measure(self, bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
        match self {
            Self::Rest => rest::measure(bench, report).await,
            Self::OneTurn => one_turn::measure(bench, report).await,
            Self::Responses => responses::measure(bench, report).await,
            Self::Replicas => replicas::measure(bench, report).await,
            Self::ToolSteps => tool_steps::measure(bench, report).await,
            Self::Durable => durable::measure(bench, report).await,
            Self::ConversationBytes => conversation_bytes::measure(bench, report).await,
            Self::BytesWritten => bytes_written::measure(bench, report).await,
            Self::FirstToken => first_token::measure(bench, report).await,
            Self::Streams => streams::measure(bench, report).await,
            Self::Queue => queue::measure(bench, report).await,
            Self::Readers => {
                let redis = bench.options.redis.as_ref().context("no Redis")?;
                readers::measure(bench, redis, report).await
            }
            Self::Depth => depth::measure(bench, report).await,
            Self::WorstTenant => worst_tenant::measure(bench, report).await,
        }
    }
}
