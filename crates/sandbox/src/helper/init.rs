//! The first process of the PID namespace of a command.
//!
//! The kernel kills all others in the namespace when it ends, so that none of them escapes. It is a
//! process of its own, since the kernel withholds from a first process the signals that it does not
//! handle, and the command is to have them all. It collects orphaned processes. The helper and the
//! command's main process are not its children: the helper sees how that one ends.

use std::fs::File;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal as HandledSignal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{DumpableBehavior, Signal, getpid, set_dumpable_behavior, set_parent_process_death_signal};

use super::super::wire::{self, Task};
use super::{Step as _, StepError, killing, own_binary};

/// Starts the first process of a new namespace. The children that the calling process starts from
/// now on are in it, too. The calling process can start no more threads.
///
/// It must have made a user namespace. The namespace ends with the calling process.
pub(super) fn start(stdout: Stdio) -> Result<Child, StepError> {
    unshare(CloneFlags::CLONE_NEWPID).step("make a PID namespace")?;
    let mut init = own_binary()
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .step("start the first process of a PID namespace")?;
    let task = wire::json_frame(wire::TASK, &Task::Init).step("encode the task")?;
    let stdin = init.stdin.as_mut().ok_or_else(|| io::Error::other("it has no input"));
    // The pipe stays open.
    stdin.and_then(|stdin| stdin.write_all(&task)).step("send the task")?;
    Ok(init)
}

/// Makes a namespace, and checks that its first process is that.
pub(super) fn try_out() -> Result<(), StepError> {
    let mut init = start(Stdio::piped())?;
    let number = init.stdout.take().map(read_line).transpose();
    let _ = init.kill();
    let _ = init.wait();
    match number.step("ask the first process of a PID namespace")?.as_deref() {
        Some("1") => Ok(()),
        _ => Err("its first process has another number").step("rely on a PID namespace"),
    }
}

fn read_line(stdout: ChildStdout) -> io::Result<String> {
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Collects orphans until the helper ends or kills this process. `control` ends with the helper.
pub(super) fn collect_orphans(control: &File) -> Result<std::convert::Infallible, StepError> {
    set_parent_process_death_signal(Some(Signal::KILL)).step("follow the helper")?;
    // The command, which is of the same user, may not look into this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("protect itself")?;
    // Blocked, it is not lost between two rounds.
    let mut children = SigSet::empty();
    children.add(HandledSignal::SIGCHLD);
    children.thread_block().step("wait for children")?;
    // The helper may have ended before this process followed it.
    let mut helper = [PollFd::new(control, PollFlags::IN)];
    let is_gone = poll(&mut helper, Some(&Timespec::default())).step("follow the helper")? > 0;
    if is_gone {
        return Err(io::Error::other("the helper has ended")).step("follow the helper");
    }
    let _ = writeln!(io::stdout(), "{}", getpid());
    loop {
        killing::reap(|_, _| ());
        children.wait().step("wait for children")?;
    }
}
