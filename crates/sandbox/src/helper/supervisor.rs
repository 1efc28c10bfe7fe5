//! Starts the stage, watches all processes that come from it, and kills them at the end.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::CloneFlags;
use rustix::process::{Pid, PidfdFlags, WaitStatus, getpid, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::super::command::{CommandEnd, Exit, SandboxLimits};
use super::super::settings::Isolation;
use super::super::wire::{self, BecomeTask, RunTask};
use super::cgroup::Group;
use super::disk::DiskWatch;
use super::killing::{self, kill_all};
use super::landlock::SignalDomain;
use super::processes::{Process, SeenTime};
use super::streams::Streams;
use super::{Step as _, StepError, init, landlock, namespaces, network, own_binary, priority, processes, stage};
use values::causes::with_causes;

/// The first look at the processes comes this soon.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// Looks are at most this far apart while the command uses more than half of a limit.
const ALERT: Duration = Duration::from_millis(5);
/// And this far otherwise.
const LAZY: Duration = Duration::from_millis(20);
/// Looks take at most this part of the processor time, unless they are further apart than this.
const LOOK_SHARE: u32 = 10;
const LONGEST: Duration = Duration::from_millis(200);
/// So many children that have ended are collected between two looks: a fork bomb may make more of
/// them than this process can collect.
const COLLECTED: usize = 1_000;
/// Memory beyond the limit counts if this many measurements have found it.
const MEASUREMENTS: u32 = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(1);
const SIGXCPU: i32 = 24;

/// Runs a command to its end. Sends its output and how it ended to the service.
pub(super) fn supervise(task: &RunTask, control: File) -> Result<(), StepError> {
    let stdin = wire::read_frame(&control, wire::STDIN).step("read the command's input")?;
    let service = io::stdout().as_fd().try_clone_to_owned().step("open standard output")?;
    let mut service = File::from(service);
    let started = Instant::now();
    match Supervised::start(
        task,
        (control, service.try_clone().step("open standard output")?),
        &stdin,
    ) {
        Ok(supervised) => supervised.run(&task.limits, started),
        Err(error) => {
            let end = CommandEnd::failed(with_causes(&error), started.elapsed());
            let end = wire::end_frame(&end).step("encode the end")?;
            io::Write::write_all(&mut service, &end).step("report the end")
        }
    }
}

/// A command that runs.
struct Supervised {
    main: Main,
    /// The first process of the command's PID namespace.
    init: Option<Child>,
    streams: Streams,
    disk: DiskWatch,
    seen: SeenTime,
    seen_time: Duration,
    has_low_priority: bool,
    peak_memory: u64,
}

/// The process that the command is. Dropping it kills it with all of its descendants, so that no
/// error and no panic of this process leaves them behind.
struct Main {
    pid: Pid,
    status: Option<WaitStatus>,
    domain: Option<SignalDomain>,
    group: Option<Group>,
}

impl Supervised {
    fn start(task: &RunTask, pipes: (File, File), stdin: &[u8]) -> Result<Self, StepError> {
        rustix::process::setsid().step("begin a session")?;
        let restrictions = &task.restrictions;
        if restrictions.pid_namespace || restrictions.proxy {
            namespaces::enter_user_and(CloneFlags::empty())?;
        }
        if restrictions.proxy {
            let listener = network::enter()?;
            // The service's copy is the only one that stays.
            network::hand_over(&listener, &pipes.0).step("hand the listener to the service")?;
        }
        // Orphans become children of this process instead of the system's first one.
        rustix::process::set_child_subreaper(Some(getpid())).step("become the subreaper")?;
        let domain = match restrictions.isolation {
            // The kernel kills all in a PID namespace at once.
            Isolation::Enforced if !restrictions.pid_namespace => {
                landlock::confine_signals(restrictions.landlock_abi, restrictions.namespaces)
            }
            Isolation::Enforced | Isolation::None => Ok(None),
        };
        let domain = domain.step("apply Landlock's scopes")?;
        let token = random_token().step("make a token")?;
        let group = match &task.cgroup {
            Some(delegated) => {
                // Not the token: everybody can list groups.
                let name = random_token().step("make a name")?;
                Some(Group::make(delegated, &name, &task.limits)?)
            }
            None => None,
        };
        let written = restrictions
            .bindings
            .iter()
            .map(|binding| binding.outside.clone())
            .collect();
        let disk = DiskWatch::start(written, task.files_bytes, &task.limits);
        // After the thread of the disk, since no thread can be started afterwards.
        let init = restrictions.pid_namespace.then(|| init::start(Stdio::null()));
        let init = init.transpose()?;
        let become_task = BecomeTask {
            restrictions: restrictions.clone(),
            command: task.command.clone(),
            limits: task.limits.clone(),
            helper: getpid().as_raw_nonzero().get(),
            token: token.clone(),
        };
        let input = stage::input(become_task, stdin).step("encode the stage's task")?;
        disk.wait_until_ready(task.limits.wall_time);
        let mut child = own_binary()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .step("start the stage")?;
        let main = Main {
            pid: Pid::from_child(&child),
            status: None,
            domain,
            group,
        };
        // It waits for its task.
        if let Some(group) = &main.group {
            group.add(main.pid)?;
        }
        let input = (input, task.input_stays_open);
        let streams = Streams::new(pipes, &mut child, input, task.limits.output_bytes, &token);
        let streams = streams.step("open the pipes")?;
        Ok(Self {
            main,
            init,
            streams,
            disk,
            seen: SeenTime::default(),
            seen_time: Duration::ZERO,
            has_low_priority: !priority::is_shared_by_session(),
            peak_memory: 0,
        })
    }

    fn run(mut self, limits: &SandboxLimits, started: Instant) -> Result<(), StepError> {
        let verdict = self.watch(limits, started);
        self.main.kill();
        let report = self.streams.drain().step("read the last output")?;
        let (cpu_time, largest) = processes::ended();
        let exit = match (verdict, report) {
            (Ok(_), Some(report)) => Exit::Failed { message: report },
            (Ok(Some(exit)), None) => exit,
            (Ok(None), None) if self.streams.has_overflowed() => Exit::OutputExceeded,
            (Ok(None), None) if self.main.has_exceeded_memory() => Exit::MemoryExceeded,
            (Ok(None), None) => self.main.exit(),
            (Err(error), _) => Exit::Failed {
                message: with_causes(&error),
            },
        };
        let end = CommandEnd {
            exit,
            cpu_time: cpu_time.max(self.seen_time),
            wall_time: started.elapsed(),
            peak_memory: self.peak_memory.max(largest),
        };
        let end = wire::end_frame(&end).step("encode the end")?;
        self.streams.finish(&end).step("report the end")
    }

    /// Watches until the command ends or exceeds a limit, which it returns then.
    fn watch(&mut self, limits: &SandboxLimits, started: Instant) -> Result<Option<Exit>, StepError> {
        // Before Linux 5.3, and in containers that forbid it, the end is seen at the next look.
        let main = pidfd_open(self.main.pid, PidfdFlags::empty()).ok();
        let main = main.as_ref().map(|main| main.as_fd());
        let (mut next_look, mut longest_pause) = (started + FIRST_LOOK, FIRST_LOOK);
        loop {
            let now = Instant::now();
            let time_left = limits.wall_time.saturating_sub(now.duration_since(started));
            let timeout = next_look.saturating_duration_since(now).min(time_left);
            let has_ended = self.streams.move_some(main, timeout).step("move output")?;
            killing::reap_at_most(COLLECTED, |pid, status| self.main.note(pid, status));
            if has_ended || self.main.status.is_some() {
                return Ok(None);
            }
            if self.streams.is_cancelled() {
                return Ok(Some(Exit::Cancelled));
            }
            if self.streams.has_overflowed() {
                return Ok(Some(Exit::OutputExceeded));
            }
            if Instant::now() >= next_look {
                let begun = own_time();
                let (exceeded, pause) = self.look(limits);
                if exceeded.is_some() {
                    return Ok(exceeded);
                }
                // Often at first: a fork bomb is fast, and holds up this process once it is large.
                longest_pause = (longest_pause * 2).min(LAZY);
                let cost = own_time().saturating_sub(begun);
                next_look = Instant::now() + pause_after(cost, pause.min(longest_pause));
            }
            if started.elapsed() >= limits.wall_time {
                return Ok(Some(Exit::TimedOut));
            }
        }
    }

    /// Compares the usage of all processes with the limits. Returns when to look again.
    fn look(&mut self, limits: &SandboxLimits) -> (Option<Exit>, Duration) {
        let (found, init) = self.descendants(limits);
        if !self.has_low_priority {
            let main = found.iter().find(|process| process.pid == self.main.pid);
            // Before it has begun a session, it is in the session of this process.
            let leads = main.is_some_and(Process::leads_session);
            self.has_low_priority = leads && priority::lower_session(self.main.pid);
        }
        self.disk
            .set_processes(found.iter().map(|process| process.shown_by).collect());
        let mut usage = processes::usage(&found);
        // This time is not the command's, but the time of the collected processes was.
        usage.cpu += init.map(|init| init.waited_time()).unwrap_or_default();
        self.seen_time = self.seen.add(&found);
        // A control group counts resources that no process shows.
        let held = if self.main.group.is_some() {
            0
        } else {
            self.disk.held_memory()
        };
        if usage.memory.saturating_add(held) > limits.memory_bytes {
            usage.memory = self.exact_memory(limits, limits.memory_bytes.saturating_sub(held));
        }
        usage.memory = usage.memory.saturating_add(held);
        self.peak_memory = self.peak_memory.max(usage.memory);
        let growth = self.disk.growth();
        let exceeded = if usage.tasks > limits.processes {
            Some(Exit::ProcessesExceeded)
        } else if usage.memory > limits.memory_bytes || self.main.has_exceeded_memory() {
            Some(Exit::MemoryExceeded)
        } else if usage.cpu.max(self.seen_time) > limits.cpu_time {
            Some(Exit::CpuExceeded)
        } else if growth > limits.disk_bytes {
            Some(Exit::DiskExceeded)
        } else {
            None
        };
        let is_large = usage.memory > limits.memory_bytes / 2 || usage.tasks > limits.processes / 2;
        (exceeded, if is_large { ALERT } else { LAZY })
    }

    /// Returns the processes of the command, and the first process of its PID namespace.
    fn descendants(&self, limits: &SandboxLimits) -> (Vec<Process>, Option<Process>) {
        // One process more than the limit would show an excess. One more is needed, since one is
        // not the command's.
        let mut found = processes::descendants(limits.processes as usize + 1);
        let init = self.init.as_ref().map(Pid::from_child);
        let init = found.iter().position(|process| Some(process.pid) == init);
        let init = init.map(|position| found.remove(position));
        (found, init)
    }

    /// Returns the memory of all processes, each shared page once. While a process is started, its
    /// memory can count twice, so an excess is measured again before it counts.
    fn exact_memory(&self, limits: &SandboxLimits, limit: u64) -> u64 {
        let mut least = u64::MAX;
        for _ in 0..MEASUREMENTS {
            let (found, _) = self.descendants(limits);
            least = least.min(processes::proportional_memory(&found));
            if least <= limit {
                break;
            }
            thread::sleep(PAUSE);
        }
        least
    }
}

impl Main {
    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.pid {
            self.status = Some(status);
        }
    }

    fn kill(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        let (main, mut ended) = (self.pid, None);
        kill_all(self.domain.as_ref(), |pid, status| {
            ended = ended.or((pid == main).then_some(status));
        });
        self.status = self.status.or(ended);
    }

    fn has_exceeded_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::has_exceeded_memory)
    }

    fn exit(&self) -> Exit {
        let Some(status) = self.status else {
            return Exit::Failed {
                message: "the command's status is unknown".to_owned(),
            };
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            // The kernel's own limit, for a single process.
            (None, Some(SIGXCPU)) => Exit::CpuExceeded,
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Failed {
                message: format!("the command's status is {status:?}"),
            },
        }
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns how long to wait after a look that took this much processor time.
fn pause_after(cost: Duration, wanted: Duration) -> Duration {
    (cost * LOOK_SHARE).min(LONGEST).max(wanted)
}

/// Returns the processor time of the calling thread. Unlike the time of day, it stands still while
/// a flood of processes holds this thread up.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().unwrap_or_default()
}

/// Returns 128 random bits as text.
fn random_token() -> io::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command's processes may hold this one up for seconds in the middle of a look. If the
    /// next look came later for that, a fork bomb could fill the machine meanwhile.
    #[test]
    fn a_look_that_was_held_up_does_not_delay_the_next_one() {
        let begun = own_time();
        thread::sleep(Duration::from_millis(100));
        let cost = own_time().saturating_sub(begun);
        assert!(cost < Duration::from_millis(50), "{cost:?}");
        assert_eq!(pause_after(Duration::from_millis(1), ALERT), Duration::from_millis(10));
        assert_eq!(pause_after(Duration::from_micros(100), ALERT), ALERT);
        assert_eq!(pause_after(Duration::from_secs(3), ALERT), LONGEST);
    }
}
