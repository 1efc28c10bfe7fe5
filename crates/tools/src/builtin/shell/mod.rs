//! `shell`: runs a command on the files of the workspace, in the sandbox.
//!
//! A backend runs the command: this process (`local.rs`), or a worker elsewhere. The files are
//! written into a directory, unless they are there already. When the command has ended with all of
//! its processes, its changes become the new tree. A call that is cut off before changes nothing.
//!
//! A command can also go on after its call, as a background job. While one runs, its directory is
//! live. Each call that reads or changes files first finds the changes of the job, and changes by
//! other tools reach the directory at once (`checkout/live.rs`, `environment/run_environment.rs`).

mod backend;
mod commands;
mod follow;
mod job;
mod local;
mod network;
mod numbers;
mod process;
mod report;
mod state;
mod transcript;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::time::MissedTickBehavior;

pub use self::backend::{BackendError, CommandBackend, CommandOutcome, ShellCommand};
pub use self::commands::{CommandSettings, Commands, MaxJobs};
use self::follow::{follow, time_left};
pub use self::job::shell_job;
pub use self::network::CommandNetwork;
use self::numbers::{id_of, next_number, store_number};
pub(crate) use self::process::ProcessSettings;
use self::report::{end_note, with_notes, with_output};
pub use self::state::restorable_shell;
use self::transcript::{EMIT_INTERVAL, Transcript};
use super::environment_tool::{arguments_schema, read_arguments};
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use sandbox::{Exit, Output};
use values::clock::{Clock, Timestamp};
use values::json::Value;
use workspace::checkout::SkippedFiles;
use workspace::environment::{EnvironmentError, Job};

/// The longest command, in bytes.
const MAX_COMMAND_BYTES: usize = 64 << 10;
/// The time of a call that asks for none.
const DEFAULT_TIME: Duration = Duration::from_mins(2);
/// How long a call of a background job that names no time waits. So most that fail at once are
/// reported at once.
const DEFAULT_JOB_WAIT: Duration = Duration::from_secs(1);
/// The longest job of a run without a limit of time.
const MAX_JOB_TIME: Duration = Duration::from_hours(24);

/// Makes the tool. The description for models depends on the settings.
pub fn shell(settings: &CommandSettings, backend: Arc<dyn CommandBackend>, clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    Arc::new(Shell {
        spec: spec(settings),
        max_time: settings.limits.wall_time,
        max_jobs: settings.max_jobs.of_run,
        backend,
        clock,
    })
}

#[derive(Debug)]
struct Shell {
    spec: ToolSpec,
    /// The most time that a call may ask for.
    max_time: Duration,
    /// The most background jobs of a run at the same time.
    max_jobs: usize,
    backend: Arc<dyn CommandBackend>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
    #[serde(default)]
    background: bool,
}

/// Why a call failed that is not the command's own failure.
#[derive(Debug, thiserror::Error)]
enum ShellError {
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("the files of the workspace can't be changed: {0}")]
    Environment(#[from] EnvironmentError),
    #[error("the run was cancelled or stopped, and the command with it")]
    Cancelled,
    #[error("the command could not run: {0}")]
    Failed(String),
    #[error("this service has no background jobs, since {0}; run the command without `background`")]
    NoJobs(&'static str),
    #[error("there are {0} background jobs in this run already, as many as it may have; stop one, or wait for its end")]
    TooManyJobs(usize),
    #[error("too many background jobs run in this service at the moment; try again later")]
    NoJobSlot,
}

impl ShellError {
    /// Returns whether this is nothing that operators must know.
    fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::Backend(BackendError::Unavailable(_))
                | Self::NoJobs(_)
                | Self::TooManyJobs(_)
                | Self::NoJobSlot
        )
    }
}

impl Shell {
    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = read_arguments(arguments)?;
        let text = if arguments.background {
            self.run_job(arguments, context).await
        } else {
            self.run_command(arguments, context).await
        };
        text.map(ToolOutput::text)
    }

    async fn run_command(&self, arguments: Arguments, context: &ToolContext) -> Result<String, ToolError> {
        let mut output = String::new();
        match self.execute(arguments, &mut output, context).await {
            Ok((note, skipped)) => {
                let without = if note.is_none() { "(no output)" } else { "" };
                Ok(with_notes(output, without, note, &skipped))
            }
            Err(error) => Err(reported(&error, &output)),
        }
    }

    /// Executes a command and adds its output to `output`, also after a failure. Returns a note
    /// about its end, and the files that the session can't have.
    async fn execute(
        &self,
        arguments: Arguments,
        output: &mut String,
        context: &ToolContext,
    ) -> Result<(Option<String>, SkippedFiles), ShellError> {
        let environment = &context.environment;
        let mut edit = environment.edit().await?;
        let tree = edit.tree.save().await.map_err(EnvironmentError::from)?;
        let command = ShellCommand {
            execution_id: context.execution_id,
            line: context.agent_id.to_string(),
            wall_time: self.wall_time(arguments.timeout_seconds, context),
            deadline: self.deadline(context),
            command: arguments.command,
            tree: tree.clone(),
            checkout: edit.take_checkout(),
            shell: environment.shell(),
            trace: context.trace,
        };
        let (printed, outcome) = self.supervise(command, context).await;
        output.push_str(&printed);
        let outcome = outcome?;
        if let Some(shell) = outcome.shell {
            environment.set_shell(shell);
        }
        if let Some(checkout) = outcome.checkout {
            edit.put_checkout(checkout);
        }
        if !outcome.tree.is_same(&tree) {
            edit.finish(outcome.tree).await?;
        }
        match outcome.exit {
            Exit::Cancelled => Err(ShellError::Cancelled),
            Exit::Failed { message } => Err(ShellError::Failed(message)),
            exit => Ok((end_note(&exit, outcome.wall_time), outcome.skipped)),
        }
    }

    /// Starts a background job, and waits for a while whether it ends.
    async fn run_job(&self, arguments: Arguments, context: &ToolContext) -> Result<String, ToolError> {
        let asked = arguments.timeout_seconds.map_or(DEFAULT_JOB_WAIT, Duration::from_secs);
        let wait = asked.min(self.max_time);
        let job = self.start_job(arguments.command, context).await;
        let job = job.map_err(|error| reported(&error, ""))?;
        let left = time_left(context).unwrap_or(Duration::MAX);
        follow(&job, wait.min(left), context).await
    }

    async fn start_job(&self, command: String, context: &ToolContext) -> Result<Arc<Job>, ShellError> {
        if self.max_jobs == 0 {
            return Err(ShellError::NoJobs("its configuration allows none"));
        }
        let elsewhere = ShellError::NoJobs("it runs commands on other machines");
        let backend = self.backend.jobs().ok_or(elsewhere)?;
        let environment = &context.environment;
        let mut edit = environment.edit().await?;
        let tree = edit.tree.save().await.map_err(EnvironmentError::from)?;
        let number = next_number(environment);
        let (id, cancellation) = (id_of(number), context.cancellation.child_token());
        let added = environment.jobs().add(id, command.clone(), self.max_jobs, cancellation);
        let (job, running) = added.ok_or(ShellError::TooManyJobs(self.max_jobs))?;
        let Some(slot) = backend.slot(tree.tenant()) else {
            environment.jobs().remove(&job.id);
            return Err(ShellError::NoJobSlot);
        };
        store_number(environment, number)?;
        let command = ShellCommand {
            execution_id: context.execution_id,
            line: context.agent_id.to_string(),
            wall_time: time_left(context).unwrap_or(MAX_JOB_TIME),
            deadline: self.deadline(context),
            command,
            tree,
            checkout: edit.take_checkout(),
            shell: environment.shell(),
            trace: context.trace,
        };
        match backend.start(command, running, slot).await {
            Ok(checkout) => edit.put_checkout(checkout),
            Err(error) => {
                environment.jobs().remove(&job.id);
                return Err(error.into());
            }
        }
        Ok(job)
    }

    /// Returns when the time of the run is spent, by the time of day, which other machines know.
    fn deadline(&self, context: &ToolContext) -> Option<Timestamp> {
        let left = TimeDelta::from_std(time_left(context)?).ok()?;
        self.clock.now().checked_add_signed(left)
    }

    /// Returns the time that a call has, at most until the run's time is spent.
    fn wall_time(&self, asked: Option<u64>, context: &ToolContext) -> Duration {
        let asked = asked.map_or(DEFAULT_TIME, Duration::from_secs).min(self.max_time);
        time_left(context).map_or(asked, |left| asked.min(left))
    }

    /// Runs a command to its end, and emits its output meanwhile. Returns the output, also if there
    /// is no outcome.
    async fn supervise(
        &self,
        command: ShellCommand,
        context: &ToolContext,
    ) -> (String, Result<CommandOutcome, BackendError>) {
        let transcript = Mutex::new(Transcript::default());
        let mut add = |output: Output| transcript.lock().add(output.bytes());
        let mut running = pin!(self.backend.run(command, &mut add, context.cancellation.clone()));
        let mut ticks = tokio::time::interval(EMIT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                _ = ticks.tick() => transcript.lock().emit(context),
            }
        };
        let transcript = std::mem::take(&mut *transcript.lock());
        (transcript.finish(context), outcome)
    }
}

/// Logs an error that operators must know, and makes the error of the tool, with the output before
/// it.
fn reported(error: &ShellError, output: &str) -> ToolError {
    if !error.is_usual() {
        tracing::warn!(error = error as &dyn std::error::Error, "a command failed to run");
    }
    ToolError::new(with_output(error, output))
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(arguments, context))
    }

    fn stores_long_output(&self) -> bool {
        true
    }

    /// The command has limits of its own, and is killed with the run. Its files are read then, so
    /// the call must not be cut.
    fn ends_by_itself(&self) -> bool {
        true
    }
}

fn spec(settings: &CommandSettings) -> ToolSpec {
    let most = settings.limits.wall_time.as_secs();
    let properties = json!({
        "command": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_COMMAND_BYTES,
            "description": "The command line, for bash or sh.",
        },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": most,
            "description": format!("The time after which the command is killed; {} if left out. With background, the time that this call waits; {} if left out.", DEFAULT_TIME.as_secs().min(most), DEFAULT_JOB_WAIT.as_secs()),
        },
        "background": {
            "type": "boolean",
            "description": "Whether the command goes on as a background job when the time of this call is spent. The result has the id of the job. shell_job reads its output, waits for its end and stops it. It ends with this run at the latest, and changes neither the working directory nor the variables of later calls.",
        },
    });
    ToolSpec {
        name: "shell".to_owned(),
        description: description(settings),
        parameters: arguments_schema(properties, &["command"]),
        destructive: true,
        ..ToolSpec::default()
    }
}

fn description(settings: &CommandSettings) -> String {
    let ephemeral = settings.ephemeral.texts();
    let network = match &settings.network {
        None => "without network".to_owned(),
        Some(network) => format!(
            "whose only network is the HTTP proxy of HTTPS_PROXY, which connects to these hosts: {}",
            network.hosts.join(", ")
        ),
    };
    let mut text = format!(
        "Runs a command line in a sandbox {network}. It runs in the directory of your workspace, whose path the file tools understand. Files that \
                    it makes, changes or removes there are part of the session, and the other file tools see them. \
                    The working directory and exported variables last until the next call. Processes that a command \
                    leaves behind do not: start what is to go on with background. Returns standard output and standard error together, and the exit code unless it is 0. \
                    There is no terminal, so use no interactive programs."
    );
    if !ephemeral.is_empty() {
        text.push_str(
            " What matches one of these patterns of .gitignore and is new lasts until the end of the run and is not \
             part of the session: ",
        );
        text.push_str(&ephemeral.join(", "));
        text.push_str(". Subagents begin without it.");
    }
    text
}
