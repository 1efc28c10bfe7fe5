//! A child process that is sent signals and never outlives its owner, and a program that is started
//! again after each of its ends.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
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

/// A role in which this program is started, apart from the suite itself.
#[derive(Debug)]
pub(crate) struct Program {
    arguments: Vec<OsString>,
    folder: PathBuf,
    log: PathBuf,
    process: Option<Process>,
}

impl Program {
    /// Makes it ready to be started in a folder, where its log has this name.
    pub(crate) fn new(arguments: Vec<OsString>, folder: &Path, log: &str) -> Self {
        Self {
            arguments,
            folder: folder.to_owned(),
            log: folder.join(log),
            process: None,
        }
    }

    /// Returns what it has printed.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Starts it, unless it is alive.
    pub(crate) fn start(&mut self) -> Result<()> {
        if self.process.as_mut().is_some_and(Process::is_alive) {
            return Ok(());
        }
        let mut command = Command::new(std::env::current_exe().context("this program has no path")?);
        command.args(&self.arguments).current_dir(&self.folder).env_clear();
        self.process = Some(Process::start(&mut command, &self.log)?);
        Ok(())
    }

    /// Starts it again if it has ended by itself.
    pub(crate) fn revive(&mut self) -> Result<()> {
        if self.process.is_some() {
            return self.start();
        }
        Ok(())
    }

    /// Kills it without a warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Process::kill)
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn end(&mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            process.signal("TERM")?;
            process.end().await?;
        }
        Ok(())
    }

    /// Asks it to end, waits for that, and starts it again.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.end().await?;
        self.start()
    }

    /// Freezes it, or lets it continue.
    pub(crate) fn freeze(&self, is_frozen: bool) -> Result<()> {
        let signal = if is_frozen { "STOP" } else { "CONT" };
        self.process.as_ref().map_or(Ok(()), |process| process.signal(signal))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
