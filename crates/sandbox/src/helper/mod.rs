//! The helper process: reads its task from standard input and does it.
//!
//! It must not start a thread before it has restricted itself, since Landlock and seccomp restrict
//! the calling thread.

mod supervisor;

mod cgroup;
mod disk;
mod holdings;
mod killing;
mod processes;
mod streams;

mod init;
mod stage;

mod calls;
mod landlock;
mod namespaces;
mod network;
mod priority;
mod privileges;
mod rlimits;
mod seccomp;

mod probe;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, RawFd};
use std::process::{Command, ExitCode, Stdio};

use super::runner::HELPER_ARGUMENT;
use super::wire::{self, Task};
use values::causes::with_causes;

/// Runs the helper: the main function of `agent-runtime sandbox-exec`.
pub fn helper_main() -> ExitCode {
    match run() {
        Ok(code) => code,
        // The service died, or cancelled a command before its task was complete.
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // The service's standard error.
            let _ = writeln!(io::stderr(), "sandbox helper: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, StepError> {
    close_inherited_files().step("close inherited files")?;
    // Not `io::stdin()`, which reads ahead: the bytes after the task are for the command.
    let stdin = io::stdin().as_fd().try_clone_to_owned().step("open standard input")?;
    let stdin = File::from(stdin);
    let task = wire::read_frame(&stdin, wire::TASK).step("read the task")?;
    match serde_json::from_slice(&task).step("decode the task")? {
        Task::Probe(task) => probe::probe(&task).map(|()| ExitCode::SUCCESS),
        Task::Supervise(task) => supervisor::supervise(&task, stdin).map(|()| ExitCode::SUCCESS),
        Task::Init => match init::collect_orphans(&stdin)? {},
        Task::Become(task) => {
            drop(stdin);
            Ok(stage::become_command(&task))
        }
    }
}

/// Returns the command that starts another helper, with the task on its standard input.
fn own_binary() -> Command {
    let mut helper = Command::new("/proc/self/exe");
    helper.arg(HELPER_ARGUMENT).env_clear().stdin(Stdio::piped());
    helper
}

/// Closes everything but standard input, output and error. The service opens its files so that no
/// child inherits them, but it may have inherited others itself.
fn close_inherited_files() -> io::Result<()> {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    // One of the numbers was the directory itself, which is closed already.
    for inherited in open.into_iter().filter(|file| *file > 2) {
        let _ = nix::unistd::close(inherited);
    }
    Ok(())
}

/// A step of the helper that failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {step}")]
struct StepError {
    step: &'static str,
    #[source]
    cause: Box<dyn Error + Send + Sync>,
}

impl StepError {
    /// Returns whether the service has closed its end of a pipe.
    fn is_closed_pipe(&self) -> bool {
        let cause = self.cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| matches!(cause.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe))
    }
}

trait Step<T> {
    /// The failed operation, to be read after "can't".
    fn step(self, step: &'static str) -> Result<T, StepError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, StepError> {
        self.map_err(|cause| StepError {
            step,
            cause: cause.into(),
        })
    }
}
