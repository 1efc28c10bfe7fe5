//! The replicas, the worker for commands, and what they stand on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::client::{Client, Patience};
use crate::ledger::Ledger;
use crate::process::Program;
use crate::proxy::Proxy;
use crate::replica::{self, Settings};
use crate::servers::{Location, Postgres, Redis, free_port};

/// How many replicas there are.
pub(crate) const REPLICAS: usize = 3;
/// The folder of commands.
const COMMANDS: &str = "commands";
const GLANCE: Duration = Duration::from_millis(50);
const READY_LIMIT: Duration = Duration::from_mins(1);

/// Everything that runs outside this process.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The replicas. The last one leaves its commands to the worker.
    pub(crate) replicas: Vec<Replica>,
    /// The worker for commands.
    pub(crate) worker: Worker,
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
    /// The program.
    pub(crate) program: Program,
}

/// A worker for commands with its own way to the database.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its way to PostgreSQL.
    pub(crate) to_postgres: Proxy,
    /// The program.
    pub(crate) program: Program,
}

impl Fleet {
    /// Starts servers and replicas and waits until all are ready.
    pub(crate) async fn start(position: &Location, folder: &Path, ledger: &Ledger) -> Result<Self> {
        let postgres = Postgres::create(position).await?;
        let redis = Redis::create(position).await?;
        let directory = tempfile::tempdir().context("make a folder for commands")?;
        let commands = directory.path().join(COMMANDS);
        let mut fleet = Self {
            replicas: Vec::new(),
            worker: Worker::prepare(folder, postgres.port, commands, &ledger.url).await?,
            postgres,
            redis,
            commands: directory,
        };
        for number in 0..REPLICAS {
            let replica = Replica::prepare(number, folder, &fleet, &ledger.url).await?;
            fleet.replicas.push(replica);
            fleet.replicas[number].program.start()?;
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
        self.commands.path().join(COMMANDS)
    }

    /// Waits until every replica is ready, and starts the worker. One that found no database at its
    /// start has ended, and is started again, as a supervisor would do.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        let client = Client::new(self.addresses(), Arc::new(Patience::new(READY_LIMIT)))?;
        let begun = Instant::now();
        for replica in &mut self.replicas {
            while !client.is_ready(&replica.address).await {
                ensure!(
                    begun.elapsed() < READY_LIMIT,
                    "{} is not ready:\n{}",
                    replica.address,
                    replica.program.log()
                );
                replica.program.start()?;
                tokio::time::sleep(GLANCE).await;
            }
        }
        // The tables are there now.
        self.worker.program.start()
    }

    /// Asks the replicas and the worker to end, and waits for that.
    pub(crate) async fn end(&mut self) -> Result<()> {
        for replica in &mut self.replicas {
            replica.program.end().await?;
        }
        self.worker.program.end().await
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
            leaves_commands: number + 1 == REPLICAS,
        };
        let config = replica::write(folder, &settings)?;
        let log = format!("replica-{number}.log");
        Ok(Self {
            address: format!("http://127.0.0.1:{port}"),
            to_postgres,
            to_redis,
            program: Program::new(arguments(ledger, &["serve"], config), folder, &log),
        })
    }
}

impl Worker {
    async fn prepare(folder: &Path, postgres_port: u16, commands: PathBuf, ledger: &str) -> Result<Self> {
        let to_postgres = Proxy::start(postgres_port).await?;
        let config = replica::write_worker(folder, to_postgres.address.port(), &commands)?;
        let arguments = arguments(ledger, &["worker", "--environments"], config);
        Ok(Self {
            to_postgres,
            program: Program::new(arguments, folder, "worker.log"),
        })
    }
}

/// Returns the arguments of this program that make it a command of the service.
fn arguments(ledger: &str, command: &[&str], config: PathBuf) -> Vec<OsString> {
    let words = [&[replica::COMMAND, ledger], command, &["--config"]].concat();
    let words = words.into_iter().map(OsString::from);
    words.chain([config.into_os_string()]).collect()
}
