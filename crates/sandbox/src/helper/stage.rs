//! The second stage: gives up every right, then becomes the command.
//!
//! The order matters. Each step needs a right that a later step gives up.

use std::fs;
use std::io::{self, Write as _};
use std::num::NonZeroI32;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, Signal, getppid};

use super::super::settings::Isolation;
use super::super::wire::{self, BecomeTask};
use super::{Step as _, StepError, landlock, namespaces, priority, privileges, rlimits, seccomp};
use values::causes::with_causes;

/// The exit code of a stage that failed.
const FAILED: u8 = 126;
/// The kernel ends a command before it ends the service when memory runs out.
const OOM_SCORE: &str = "1000";

/// Becomes the command. Returns only if that failed, and reports why on standard error.
pub(super) fn become_command(task: &BecomeTask) -> ExitCode {
    let Err(error) = restrict_and_execute(task);
    let report = format!("{}{}", task.token, with_causes(&error));
    let _ = io::stderr().write_all(report.as_bytes());
    ExitCode::from(FAILED)
}

fn restrict_and_execute(task: &BecomeTask) -> Result<std::convert::Infallible, StepError> {
    // The helper kills everything at its end. This is for the case that the helper is killed.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("follow the helper")?;
    // In a PID namespace the helper has no number, and the command ends with the first process.
    let helper = getppid().map(Pid::as_raw_nonzero).map(NonZeroI32::get);
    if !task.restrictions.pid_namespace && helper != Some(task.helper) {
        return Err(io::Error::other("the helper has ended")).step("follow the helper");
    }
    rustix::process::setsid().step("begin a session")?;
    rustix::process::umask(Mode::from_bits_truncate(0o022));
    // Not a protection: it may fail.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // Landlock hides the answer.
    let allows_sessions = !priority::is_shared_by_session();
    let command = &task.command;
    if task.restrictions.namespaces {
        namespaces::enter(&task.restrictions).step("enter namespaces")?;
    }
    enter_directory(&command.directory, &command.cwd).step("enter the working directory")?;
    rlimits::apply(&task.limits, task.restrictions.namespaces).step("set limits")?;
    if task.restrictions.isolation == Isolation::Enforced {
        privileges::drop_all().step("drop privileges")?;
        landlock::confine(&task.restrictions).step("apply Landlock")?;
        seccomp::apply(&task.restrictions, allows_sessions).step("apply seccomp")?;
    }
    priority::lower_own();
    let error = Command::new(&command.program)
        .args(&command.arguments)
        .env_clear()
        .envs(&command.variables)
        .exec();
    Err(error).step("execute the program")
}

/// Changes to `cwd`, which no link may lead out of the working directory.
fn enter_directory(directory: &Path, cwd: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
    let inside = cwd.strip_prefix(directory).unwrap_or(cwd);
    let inside = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let cwd = rustix::fs::openat2(root, inside, flags, Mode::empty(), beneath)?;
    rustix::process::fchdir(cwd)?;
    Ok(())
}

/// Encodes the task of the stage and the standard input that follows it.
pub(super) fn input(task: BecomeTask, stdin: &[u8]) -> io::Result<Vec<u8>> {
    let mut input = wire::json_frame(wire::TASK, &wire::Task::Become(task))?;
    input.extend(stdin);
    Ok(input)
}
