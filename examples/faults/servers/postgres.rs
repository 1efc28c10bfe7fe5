//! A PostgreSQL that can be restarted, politely or not. Its durability is the default one.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, PgConnection};
use tokio::time::timeout;

use super::{Location, free_port};
use crate::process::Process;

const NAME: &str = "faults";
const START_LIMIT: Duration = Duration::from_mins(1);
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(20);

/// A server with one database.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// Where it listens.
    pub(crate) port: u16,
    /// Whether it counts statements.
    pub(crate) counts_statements: bool,
    position: Location,
    data: PathBuf,
    process: Option<Process>,
}

/// How a server ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shutdown {
    /// It drops its clients and writes everything down.
    Fast,
    /// It drops everything, and recovers when it starts again.
    Immediate,
}

impl Postgres {
    /// Makes a server and its database.
    pub(crate) async fn create(position: &Location) -> Result<Self> {
        let data = position.folder.join("postgres");
        let initdb = position
            .command(&position.postgres_bin.join("initdb"))
            .args([
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .arg("--pgdata")
            .arg(&data)
            .stdin(Stdio::null())
            .output()
            .context("run initdb")?;
        ensure!(
            initdb.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&initdb.stderr)
        );
        let library = position.postgres_bin.join("../lib/pg_stat_statements.so");
        let mut server = Self {
            port: free_port()?,
            counts_statements: library.exists(),
            position: position.clone(),
            data,
            process: None,
        };
        server.start().await?;
        let mut admin = server.options().database("postgres").connect().await?;
        sqlx::query("create database faults").execute(&mut admin).await?;
        if server.counts_statements {
            let mut connection = server.connect().await?;
            sqlx::query("create extension pg_stat_statements")
                .execute(&mut connection)
                .await?;
        }
        Ok(server)
    }

    /// Starts it and waits until it responds.
    pub(crate) async fn start(&mut self) -> Result<()> {
        let mut command = self.position.command(&self.position.postgres_bin.join("postgres"));
        command.arg("-D").arg(&self.data).args(["-p", &self.port.to_string()]);
        for setting in [
            // As long it waits at its end for clients that fell silent before they had said who
            // they are.
            "authentication_timeout=5s",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
        ] {
            command.args(["-c", setting]);
        }
        if self.counts_statements {
            command.args(["-c", "shared_preload_libraries=pg_stat_statements"]);
        }
        let log = self.position.folder.join("postgres.log");
        let process = self.process.insert(Process::start(&mut command, &log)?);
        let begun = Instant::now();
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username("postgres")
            .ssl_mode(PgSslMode::Disable)
            .database("postgres");
        // A connection that the server takes as it starts may never get a response.
        while !matches!(timeout(ANSWER_LIMIT, options.connect()).await, Ok(Ok(_))) {
            ensure!(
                process.is_alive() && begun.elapsed() < START_LIMIT,
                "PostgreSQL does not start: {}",
                fs::read_to_string(&log).unwrap_or_default()
            );
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Ends it.
    pub(crate) async fn stop(&mut self, how: Shutdown) -> Result<()> {
        let Some(process) = self.process.take() else {
            return Ok(());
        };
        process.signal(match how {
            Shutdown::Fast => "INT",
            Shutdown::Immediate => "QUIT",
        })?;
        process.end().await
    }

    /// Connects to the database, past all proxies.
    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        self.options().connect().await.context("connect to PostgreSQL")
    }

    /// Returns how to connect to the database.
    pub(crate) fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username("postgres")
            .ssl_mode(PgSslMode::Disable)
            .database(NAME)
            .disable_statement_logging()
    }
}

/// Returns the URL of the database behind another port.
pub(crate) fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{NAME}?sslmode=disable")
}
