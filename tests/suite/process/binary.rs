//! Running the binary in a folder of its own, apart from the environment and the files of this
//! machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::time::sleep;

use crate::support::mock_model::MockModel;

/// How long anything may take that is not a matter of the test.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// How often a state is checked.
const GLANCE: Duration = Duration::from_millis(5);

/// A working directory and the settings that every command in it gets.
#[derive(Debug)]
pub(super) struct Home {
    folder: TempDir,
    variables: Vec<(String, String)>,
    started: AtomicUsize,
}

/// The result of a command that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A process; dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Home {
    /// Makes a folder whose commands use the store and serve on a free port.
    pub(super) fn new(store_url: &str) -> Self {
        let home = Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
            started: AtomicUsize::new(0),
        };
        home.variable("AGENT_RUNTIME__STORE__URL", store_url)
            .variable("AGENT_RUNTIME__STORE__MAX_CONNECTIONS", "8")
            // Longer than a test machine stands still.
            .variable("AGENT_RUNTIME__STORE__ACQUIRE_TIMEOUT", "20s")
            .variable("AGENT_RUNTIME__HTTP__LISTEN", "127.0.0.1:0")
    }

    /// Makes a folder with a SQLite store inside.
    pub(super) fn with_file() -> Self {
        Self::new("sqlite://store.db")
    }

    /// Sets a variable of the environment.
    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes the mock the provider `mock` and the model of the agent `echo`.
    pub(super) fn with_mock(self, mock: &MockModel) -> Self {
        self.write("config/agents/echo.toml", "name = 'echo'\nmodel = 'mock/m'\n");
        let providers = format!(
            "[providers.mock]\nkind = 'openai_chat'\nbase_url = '{}'\n",
            mock.base_url()
        );
        self.write("agent-runtime.toml", &format!("[models]\nmax_retries = 0\n{providers}"));
        self
    }

    /// Writes a file into the folder.
    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the binary.
    pub(super) fn start(&self, arguments: &[&str]) -> Process {
        self.start_command(&mut binary(arguments), None)
    }

    /// Starts the binary with an output whose reader is gone.
    pub(super) fn start_unread(&self, arguments: &[&str]) -> Process {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.start_command(&mut binary(arguments), Some(writer.into()))
    }

    /// Starts a line of shell, in which `agent-runtime` is the binary.
    pub(super) fn start_shell(&self, line: &str) -> Process {
        let binary = Path::new(env!("CARGO_BIN_EXE_agent-runtime")).parent().unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.display());
        self.start_command(Command::new("sh").args(["-c", line]).env("PATH", path), None)
    }

    /// Runs the binary to its end.
    pub(super) async fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end().await
    }

    /// Runs the binary to its end, which must be a success, and returns what it printed.
    pub(super) async fn succeed(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments).await;
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Runs the binary to its end, which must be a failure, and returns what it complained of.
    pub(super) async fn fail(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments).await;
        assert!(
            ended.code.is_some_and(|code| code != 0),
            "{arguments:?}: {:?} {}",
            ended.code,
            ended.stdout
        );
        ended.stderr
    }

    fn start_command(&self, command: &mut Command, output: Option<Stdio>) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let file = |name| self.path().join(format!("{number}.{name}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        let printed = File::create(&stdout).unwrap();
        let path = command.get_envs().find(|(name, _)| *name == "PATH");
        let path = path.and_then(|(_, value)| value.map(ToOwned::to_owned));
        let child = command
            .env_clear()
            .envs(path.map(|path| ("PATH", path)))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(output.unwrap_or_else(|| printed.into()))
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Process { child, stdout, stderr }
    }
}

fn binary(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-runtime"));
    command.args(arguments);
    command
}

impl Process {
    /// Sends a signal, such as `TERM`.
    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success(), "SIG{signal} can't be sent");
    }

    /// Ends it without a warning.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns its number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how it ended, if it has.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end.
    pub(super) async fn end(self) -> Ended {
        self.end_within(PATIENCE).await
    }

    /// Waits for its end for so long at most.
    pub(super) async fn end_within(mut self, limit: Duration) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.status() {
                break status;
            }
            assert!(begun.elapsed() < limit, "the process goes on: {}", self.stderr());
            sleep(GLANCE).await;
        };
        Ended {
            code: status.code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }

    /// Returns what it has printed so far.
    pub(super) fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    /// Returns what it has logged so far.
    pub(super) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
