//! The replicas and what they stand on, and the mishaps that can befall each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::client::{Client, Patience};
use crate::ledger::Ledger;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::replica::{self, Settings};
use crate::servers::{Location, Postgres, Redis, free_port};

/// How many replicas there are.
pub(crate) const REPLICAS: usize = 3;
const GLANCE: Duration = Duration::from_millis(50);
const READY_LIMIT: Duration = Duration::from_mins(1);

/// Everything that runs outside this process.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The replicas.
    pub(crate) replicas: Vec<Replica>,
    /// The database of all of them.
    pub(crate) postgres: Postgres,
    /// The board of all of them.
    pub(crate) redis: Redis,
    /// The folder for the directories of commands. All replicas share it, as those of one host do.
    /// It belongs to their user, which the folder of the servers need not.
    commands: TempDir,
}

/// One replica with its own ways to the servers.
#[derive(Debug)]
pub(crate) struct Replica {
    /// Where it listens.
    pub(crate) address: String,
    /// Its way to PostgreSQL.
    pub(crate) to_postgres: Proxy,
    /// Its way to Redis.
    pub(crate) to_redis: Proxy,
    program: PathBuf,
    config: PathBuf,
    folder: PathBuf,
    log: PathBuf,
    ledger: String,
    process: Option<Process>,
}

impl Fleet {
    /// Starts servers and replicas and waits until all are ready.
    pub(crate) async fn start(position: &Location, folder: &Path, ledger: &Ledger) -> Result<Self> {
        let postgres = Postgres::create(position).await?;
        let redis = Redis::create(position).await?;
        let mut fleet = Self {
            replicas: Vec::new(),
            postgres,
            redis,
            commands: tempfile::tempdir().context("make a folder for commands")?,
        };
        for number in 0..REPLICAS {
            let replica = Replica::prepare(number, folder, &fleet, &ledger.url).await?;
            fleet.replicas.push(replica);
            fleet.replicas[number].start()?;
        }
        fleet.wait_until_ready().await?;
        Ok(fleet)
    }

    /// Returns where the replicas listen.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.address.clone()).collect()
    }

    /// Returns the folder for the directories of commands.
    pub(crate) fn commands(&self) -> PathBuf {
        self.commands.path().join("commands")
    }

    /// Waits until every replica is ready. One that found no database at its start has ended, and
    /// is started again, as a supervisor would do.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        let client = Client::new(self.addresses(), Arc::new(Patience::new(READY_LIMIT)))?;
        let begun = Instant::now();
        for replica in &mut self.replicas {
            while !client.is_ready(&replica.address).await {
                let log = || fs::read_to_string(&replica.log).unwrap_or_default();
                ensure!(
                    begun.elapsed() < READY_LIMIT,
                    "{} is not ready:\n{}",
                    replica.address,
                    log()
                );
                replica.start()?;
                tokio::time::sleep(GLANCE).await;
            }
        }
        Ok(())
    }

    /// Asks all replicas to end, and waits for that.
    pub(crate) async fn end(&mut self) -> Result<()> {
        for replica in &mut self.replicas {
            if let Some(process) = replica.process.take() {
                process.signal("TERM")?;
                process.end().await?;
            }
        }
        Ok(())
    }
}

impl Replica {
    async fn prepare(number: usize, folder: &Path, fleet: &Fleet, ledger: &str) -> Result<Self> {
        let to_postgres = Proxy::start(fleet.postgres.port).await?;
        let to_redis = Proxy::start(fleet.redis.port).await?;
        let port = free_port()?;
        let settings = Settings {
            number,
            port,
            postgres_port: to_postgres.address.port(),
            redis_port: to_redis.address.port(),
            commands: fleet.commands(),
        };
        Ok(Self {
            address: format!("http://127.0.0.1:{port}"),
            to_postgres,
            to_redis,
            program: std::env::current_exe().context("this program has no path")?,
            config: replica::write(folder, &settings)?,
            folder: folder.to_owned(),
            log: folder.join(format!("replica-{number}.log")),
            ledger: ledger.to_owned(),
            process: None,
        })
    }

    /// Starts it, unless it is alive.
    pub(crate) fn start(&mut self) -> Result<()> {
        if self.process.as_mut().is_some_and(Process::is_alive) {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        command
            .args([replica::COMMAND, &self.ledger, "serve", "--config"])
            .arg(&self.config)
            .current_dir(&self.folder)
            .env_clear();
        self.process = Some(Process::start(&mut command, &self.log)?);
        Ok(())
    }

    /// Kills it without a warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Process::kill)
    }

    /// Asks it to end, waits for that, and starts it again.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            process.signal("TERM")?;
            process.end().await?;
        }
        self.start()
    }

    /// Freezes it, or lets it continue.
    pub(crate) fn freeze(&self, is_frozen: bool) -> Result<()> {
        let signal = if is_frozen { "STOP" } else { "CONT" };
        self.process.as_ref().map_or(Ok(()), |process| process.signal(signal))
    }
}
