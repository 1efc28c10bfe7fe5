//! A Redis that can be stopped, emptied and started. It retains nothing when it ends.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Location, free_port};
use crate::process::Process;

const START_LIMIT: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(20);

/// A server.
#[derive(Debug)]
pub(crate) struct Redis {
    /// Where it listens.
    pub(crate) port: u16,
    position: Location,
    process: Option<Process>,
}

impl Redis {
    /// Starts a server.
    pub(crate) async fn create(position: &Location) -> Result<Self> {
        let mut server = Self {
            port: free_port()?,
            position: position.clone(),
            process: None,
        };
        server.start().await?;
        Ok(server)
    }

    /// Starts it, empty, and waits until it responds.
    pub(crate) async fn start(&mut self) -> Result<()> {
        let mut command = self.position.command(Path::new("redis-server"));
        command
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--protected-mode",
                "no",
            ])
            .args(["--port", &self.port.to_string()]);
        let log = self.position.folder.join("redis.log");
        let process = self.process.insert(Process::start(&mut command, &log)?);
        let begun = Instant::now();
        while command_answer(self.port, "PING").await.is_err() {
            ensure!(
                process.is_alive() && begun.elapsed() < START_LIMIT,
                "Redis does not start"
            );
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Ends it with all that it holds.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Process::kill)
    }

    /// Empties it while it serves.
    pub(crate) async fn empty(&self) -> Result<()> {
        command_answer(self.port, "FLUSHALL").await
    }
}

async fn command_answer(port: u16, command: &str) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{command}\r\n").as_bytes()).await?;
    let mut answer = [0; 64];
    let length = stream.read(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer[..length]);
    ensure!(answer.starts_with('+'), "{command}: {answer}");
    Ok(())
}
