//! A child process that is sent signals and never outlives its owner.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// How often a process that should end is checked.
const GLANCE: Duration = Duration::from_millis(10);
/// A server gets this long to end.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a process that adds what it prints to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// Sends a signal, such as `STOP`. One that has ended takes none.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let kill = Command::new("kill")
            .args(["-s", signal, &self.child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        kill.context("run kill")?;
        Ok(())
    }

    /// Returns whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Result<()> {
        let begun = Instant::now();
        while self.is_alive() {
            ensure!(
                begun.elapsed() < END_LIMIT,
                "process {} does not end after {END_LIMIT:?}",
                self.child.id()
            );
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Ends it without a warning.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
