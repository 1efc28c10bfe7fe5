//! The port through which calls run commands: in this process, or at workers on other machines.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use sandbox::{Exit, Output};
use tasks::fair_share::Share;
use values::clock::Timestamp;
use values::ids::ExecutionId;
use values::session::ShellState;
use values::tenant::TenantId;
use values::trace_context::TraceContext;
use workspace::Tree;
use workspace::checkout::{Checkout, CheckoutError, SkippedFiles};
use workspace::environment::RunningJob;

/// Runs commands on the files of workspaces.
#[async_trait]
pub trait CommandBackend: Send + Sync + fmt::Debug {
    /// Runs a command to its end, and passes on its output meanwhile. No process of it is left
    /// afterwards. Cancelling the token kills the command soon, and so does dropping the future.
    async fn run(
        &self,
        command: ShellCommand,
        output: &mut (dyn FnMut(Output) + Send),
        cancel: CancellationToken,
    ) -> Result<CommandOutcome, BackendError>;

    /// Returns the runner of background jobs; `None` if this backend has none.
    fn jobs(&self) -> Option<&dyn JobBackend> {
        None
    }
}

/// Runs commands that go on after their calls.
#[async_trait]
pub trait JobBackend: Send + Sync + fmt::Debug {
    /// Returns a slot for a job, unless too many jobs are running.
    fn slot(&self, tenant: &TenantId) -> Option<Share>;

    /// Starts a job. Returns the directory in which it runs, which is live then. The job leaves no
    /// state of its shell.
    async fn start(&self, command: ShellCommand, job: RunningJob, slot: Share) -> Result<Checkout, BackendError>;
}

/// A command for the shell, with its initial files and variables.
#[derive(Debug)]
pub struct ShellCommand {
    /// The execution that the call belongs to.
    pub execution_id: ExecutionId,
    /// The line of sessions that the run continues. Its directory is found again by it.
    pub line: String,
    /// The command line.
    pub command: String,
    /// The files. They are saved.
    pub tree: Tree,
    /// The directory of the environment's commands, if the last outcome had one.
    pub checkout: Option<Checkout>,
    /// The state that the last shell has left.
    pub shell: Option<ShellState>,
    /// The time from start to end, at most the backend's own limit.
    pub wall_time: Duration,
    /// When the time of the run is spent. The command must have ended then, also if it began late.
    pub deadline: Option<Timestamp>,
    /// The span of the call, if the run is recorded.
    pub trace: Option<TraceContext>,
}

/// The end of a command, with its files and variables.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: Exit,
    /// Time from start to end.
    pub wall_time: Duration,
    /// The files.
    pub tree: Tree,
    /// The directory for the next command of the environment.
    pub checkout: Option<Checkout>,
    /// The state that the shell has left. `None` if the state is as before.
    pub shell: Option<ShellState>,
    /// The files that can't be part of the workspace.
    pub skipped: SkippedFiles,
}

/// Why a command has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// No command can run.
    #[error("this service can't run commands: {0}. Do without them.")]
    Unavailable(String),
    /// The directory of the command can't be written or read.
    #[error("the files can't be written to or read from the directory of the run: {0}")]
    Checkout(#[from] CheckoutError),
    /// Another failure, in words for the model.
    #[error("{0}")]
    Failed(String),
}
