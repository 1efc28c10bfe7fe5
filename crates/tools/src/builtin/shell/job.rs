//! `shell_job`: reads the output of background jobs of `shell`, waits for their ends, and stops
//! them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use super::commands::CommandSettings;
use super::follow::{follow, time_left};
use super::numbers::was_job;
use crate::builtin::environment_tool::{arguments_schema, read_arguments};
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use values::json::Value;
use workspace::environment::{Environment, Job};

/// The longest id.
const MAX_ID_LENGTH: usize = 32;
/// How long a call waits that names no time.
const DEFAULT_WAIT: Duration = Duration::from_mins(1);
/// How long a call waits for the end of a job that it has killed.
const KILL_TIME: Duration = Duration::from_secs(20);
/// The most characters of a command line that a list of jobs shows.
const MAX_SHOWN: usize = 60;

/// Makes the tool.
pub fn shell_job(settings: &CommandSettings) -> Arc<dyn Tool> {
    let max_time = settings.limits.wall_time;
    Arc::new(ShellJob {
        spec: spec(max_time),
        max_time,
    })
}

#[derive(Debug)]
struct ShellJob {
    spec: ToolSpec,
    /// The longest wait.
    max_time: Duration,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    id: String,
    #[serde(default)]
    action: Action,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    #[default]
    Read,
    Wait,
    Stop,
}

impl ShellJob {
    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = read_arguments(arguments)?;
        let environment = &context.environment;
        let job = environment.jobs().find(&arguments.id);
        let job = job.ok_or_else(|| ToolError::new(missing(environment, &arguments.id)))?;
        let at_most = match arguments.action {
            Action::Read => Duration::ZERO,
            Action::Wait => {
                let asked = arguments.timeout_seconds.map_or(DEFAULT_WAIT, Duration::from_secs);
                let left = time_left(context).unwrap_or(Duration::MAX);
                asked.min(self.max_time).min(left)
            }
            Action::Stop => {
                job.cancel();
                KILL_TIME
            }
        };
        follow(&job, at_most, context).await.map(ToolOutput::text)
    }
}

/// Returns the text for the model about a missing job.
fn missing(environment: &Environment, id: &str) -> String {
    if was_job(environment, id) {
        return format!(
            "{id} and its output are gone. A job ends with its run, and is lost if the process of the service that \
             runs it ends; of those that have ended, the last few are remembered. Start it again if you need it."
        );
    }
    let jobs: Vec<_> = environment.jobs().all().iter().map(|job| shown(job)).collect();
    match jobs.as_slice() {
        [] => format!("there is no job {id:?}, nor any other; start one with the argument `background` of `shell`"),
        jobs => format!("there is no job {id:?}; the jobs are {}", jobs.join(", ")),
    }
}

fn shown(job: &Job) -> String {
    let state = if job.end().is_some() { "ended" } else { "running" };
    let mut command: String = job.command.chars().take(MAX_SHOWN).collect();
    if command.len() < job.command.len() {
        command.push('…');
    }
    format!("{} ({state}: {command})", job.id)
}

impl Tool for ShellJob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(arguments, context))
    }

    fn stores_long_output(&self) -> bool {
        true
    }

    /// Output that was taken from a job must not be lost.
    fn ends_by_itself(&self) -> bool {
        true
    }
}

fn spec(max_time: Duration) -> ToolSpec {
    let properties = json!({
        "id": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_ID_LENGTH,
            "description": "The id of the job, as shell has returned it, such as job-1.",
        },
        "action": {
            "type": "string",
            "enum": ["read", "wait", "stop"],
            "description": "read (if left out) returns at once, wait waits until the job has ended, and stop \
                            kills it with all of its processes.",
        },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": max_time.as_secs(),
            "description": format!(
                "The longest time to wait, after which the job goes on; {} if left out.",
                DEFAULT_WAIT.min(max_time).as_secs()
            ),
        },
    });
    ToolSpec {
        name: "shell_job".to_owned(),
        description: "Reads, awaits or stops a background job of shell. Returns what the job has printed since the \
                      last read, and whether it is running or how it has ended. The files that it has written by \
                      then are in the workspace."
            .to_owned(),
        parameters: arguments_schema(properties, &["id"]),
        // A job is in this process only. So a call that a takeover repeats finds it lost.
        idempotent: true,
        ..ToolSpec::default()
    }
}
