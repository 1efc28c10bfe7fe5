//! Kills every descendant of the helper, or stops them for a while.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpgrp, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal, wait,
};

use super::landlock::SignalDomain;
use super::processes::{self, Process};

/// The pause between two rounds grows up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How often processes are looked for that still run, and the pause after each time.
const STOPPING_ROUNDS: usize = 50;
const STOPPING_PAUSE: Duration = Duration::from_micros(200);

/// The result of reaping.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaped {
    /// There are children left.
    SomeLeft,
    /// There are no descendants: as the subreaper, this process would be their parent.
    NoneLeft,
}

/// Collects all children that have ended. Passes each to `ended`. May not return while processes
/// end faster than this one can collect them.
pub(super) fn reap(ended: impl FnMut(Pid, WaitStatus)) -> Reaped {
    reap_at_most(usize::MAX, ended)
}

/// Collects children that have ended, up to a number of them.
pub(super) fn reap_at_most(at_most: usize, mut ended: impl FnMut(Pid, WaitStatus)) -> Reaped {
    for _ in 0..at_most {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Reaped::NoneLeft,
            Ok(None) | Err(_) => return Reaped::SomeLeft,
        }
    }
    Reaped::SomeLeft
}

/// Kills and reaps until no descendant is left. A process that can't be interrupted delays this.
///
/// A fork bomb may make processes faster than they can be found. With a domain, all are killed at
/// once. Without one, a command can't leave its session, so that it gets no more processor time
/// than this process, and each process is killed before its children are listed.
pub(super) fn kill_all(domain: Option<&SignalDomain>, mut ended: impl FnMut(Pid, WaitStatus)) {
    let mut pause = Duration::from_micros(100);
    let mut killed = HashSet::new();
    while reap(&mut ended) == Reaped::SomeLeft {
        let is_growing = match domain {
            Some(domain) => {
                kill_domain(domain);
                false
            }
            None => kill_found(&mut killed),
        };
        if reap(&mut ended) == Reaped::NoneLeft {
            return;
        }
        if !is_growing {
            sleep(pause);
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }
}

/// Kills the descendants from the top down. A process that was killed makes no further children, so
/// the list of them that is read afterwards is complete, or they are children of this process by
/// then. Returns whether it has found any that were not killed before.
fn kill_found(killed: &mut HashSet<(Pid, u64)>) -> bool {
    let before = killed.len();
    let Some(children) = processes::own_children() else {
        // The kernel does not list children.
        for process in processes::descendants(usize::MAX) {
            if kill(&process).is_ok() {
                killed.insert((process.pid, process.start));
            }
        }
        return killed.len() > before;
    };
    let mut waiting = Vec::new();
    for child in children {
        // Also kills children that the kernel hides from this process. The number of a child stays
        // its own until this process has waited for it.
        let _ = kill_process(child, Signal::KILL);
        waiting.extend(processes::read(child));
    }
    let mut groups = HashSet::from([getpgrp()]);
    while let Some(process) = waiting.pop() {
        killed.insert((process.pid, process.start));
        if let Some(group) = process.group.filter(|group| groups.insert(*group)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for child in process.children().into_iter().filter_map(processes::read) {
            // Its number may name another process by now.
            let is_ours = child.is_child_of(process.pid) || child.is_child_of(getpid());
            if !is_ours {
                continue;
            }
            if killed.contains(&(child.pid, child.start)) || kill(&child).is_ok() {
                waiting.push(child);
            }
        }
    }
    killed.len() > before
}

/// Kills every process that this one may signal, except itself. In a signal domain, these are its
/// descendants. Without one, it would be every process of the user.
fn kill_domain(_: &SignalDomain) {
    // The group of process 1 is how `kill(-1)` is spelled here.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
}

/// Keeps all descendants from running until it is dropped, so that they move nothing. Processes
/// that are made faster than they can be stopped run on.
pub(super) struct Standstill(Vec<Process>);

impl Standstill {
    pub(super) fn begin() -> Self {
        let mut stopped = Vec::new();
        for _ in 0..STOPPING_ROUNDS {
            let found = processes::descendants(usize::MAX);
            let mut running = found.into_iter().filter(Process::may_run).peekable();
            if running.peek().is_none() {
                break;
            }
            stopped.extend(running.filter(|process| signal(process, Signal::STOP).is_ok()));
            sleep(STOPPING_PAUSE);
        }
        Self(stopped)
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        for process in &self.0 {
            let _ = signal(process, Signal::CONT);
        }
    }
}

fn kill(process: &Process) -> Result<(), Errno> {
    signal(process, Signal::KILL)
}

/// Signals one process, unless its number names another one by now.
fn signal(process: &Process, signal: Signal) -> Result<(), Errno> {
    let pidfd = match pidfd_open(process.pid, PidfdFlags::empty()) {
        // Before Linux 5.3, and in containers that forbid it.
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened?),
    };
    // The descriptor stays with the process that it was opened for.
    if processes::read(process.pid).is_none_or(|now| now.start != process.start) {
        return Err(Errno::SRCH);
    }
    match pidfd {
        Some(pidfd) => pidfd_send_signal(pidfd, signal),
        None => kill_process(process.pid, signal),
    }
}
