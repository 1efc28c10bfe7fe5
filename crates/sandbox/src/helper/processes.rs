//! Reads the kernel's data of processes: the descendants of the helper, and their usage.

use std::collections::HashMap;
use std::fs;
use std::num::NonZeroU64;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, getpid};

/// A process, as it was when it was read.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) group: Option<Pid>,
    /// When it started, in clock ticks. With the number, this names a process for ever.
    pub(super) start: u64,
    /// The thread by which the kernel shows the memory and the files of the process.
    pub(super) shown_by: Pid,
    parent: i32,
    session: i32,
    state: u8,
    threads: u32,
    /// The processor time of its own threads.
    cpu_ticks: u64,
    /// The processor time of the children that it has waited for.
    waited_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// The current use of the descendants.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Usage {
    /// Processes and threads.
    pub(super) tasks: u32,
    /// Resident, swapped out and page tables. Shared pages count in each process.
    pub(super) memory: u64,
    pub(super) cpu: Duration,
}

impl Process {
    /// Returns whether it lives. An ended process that waits for its parent has no memory.
    pub(super) fn has_memory(&self) -> bool {
        self.resident_pages > 0
    }

    /// Returns whether it may run: it is not stopped and has not ended.
    pub(super) fn may_run(&self) -> bool {
        !matches!(self.state, b'T' | b't' | b'Z' | b'X')
    }

    /// Returns whether it has begun the session that it is in.
    pub(super) fn leads_session(&self) -> bool {
        self.session == self.pid.as_raw_nonzero().get()
    }

    pub(super) fn is_child_of(&self, parent: Pid) -> bool {
        self.parent == parent.as_raw_nonzero().get()
    }

    /// Returns the processor time of the children that it has waited for.
    pub(super) fn waited_time(&self) -> Duration {
        time_of(self.waited_ticks)
    }

    /// Returns its children at the moment.
    pub(super) fn children(&self) -> Vec<Pid> {
        children(self.pid, self.threads).unwrap_or_default()
    }
}

/// Reads a process. Returns `None` if it is gone.
pub(super) fn read(pid: Pid) -> Option<Process> {
    let mut process = parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)?;
    // Its first thread may have ended, and had no memory then. Its other threads still have memory.
    if process.resident_pages == 0
        && process.threads > 1
        && let Some(living) = threads(pid).find(|thread| thread.resident_pages > 0)
    {
        process.shown_by = living.pid;
        process.resident_pages = living.resident_pages;
        process.virtual_bytes = living.virtual_bytes;
    }
    Some(process)
}

/// Reads the threads of a process as if they were processes.
fn threads(pid: Pid) -> impl Iterator<Item = Process> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let thread = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        parse(thread, &fs::read(entry.path().join("stat")).ok()?)
    })
}

fn parse(pid: Pid, stat: &[u8]) -> Option<Process> {
    // The name, in parentheses, may hold any bytes. The state follows it as the third field.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    Some(Process {
        pid,
        shown_by: pid,
        state: field(3)?.bytes().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok().and_then(Pid::from_raw),
        session: field(6)?.parse().ok()?,
        cpu_ticks: number(14)?.saturating_add(number(15)?),
        waited_ticks: number(16)?.saturating_add(number(17)?),
        threads: field(20)?.parse().ok()?,
        start: number(22)?,
        virtual_bytes: number(23)?,
        resident_pages: number(24)?,
    })
}

/// Returns the children of this process. All orphans among its descendants are.
/// `None` if the kernel does not list them.
pub(super) fn own_children() -> Option<Vec<Pid>> {
    children(getpid(), 0)
}

/// Returns the descendants of this process, and not many more than `at_most` of them. May miss a
/// process that loses its parent meanwhile. It is then a child of this process, so the next call
/// finds it.
pub(super) fn descendants(at_most: usize) -> Vec<Process> {
    let myself = getpid();
    let Some(mut waiting) = children(myself, 0) else {
        return descendants_by_parent(myself);
    };
    let mut found: Vec<Process> = Vec::new();
    while let Some(pid) = waiting.pop() {
        if found.len() > at_most {
            break;
        }
        let Some(process) = read(pid) else { continue };
        waiting.extend(children(pid, process.threads).unwrap_or_default());
        found.push(process);
    }
    found.sort_unstable_by_key(|process| process.pid.as_raw_nonzero());
    found.dedup_by_key(|process| process.pid);
    found
}

/// Returns the children of all threads of a process. Returns `None` if the kernel does not list
/// children, or if the process is gone.
fn children(pid: Pid, threads: u32) -> Option<Vec<Pid>> {
    let read_list = |thread: &str| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok();
    let parse = |list: String| -> Vec<Pid> {
        list.split_ascii_whitespace()
            .filter_map(|child| Pid::from_raw(child.parse().ok()?))
            .collect()
    };
    if threads == 1 {
        return read_list(&pid.to_string()).map(parse);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let lists = threads.filter_map(|thread| read_list(thread.ok()?.file_name().to_str()?));
    let mut lists = lists.map(parse).peekable();
    lists.peek()?;
    Some(lists.flatten().collect())
}

/// Does the same on kernels that do not list children: reads all processes there are.
fn descendants_by_parent(ancestor: Pid) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut others: Vec<Process> = entries
        .filter_map(|entry| read(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
        .collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![ancestor.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        let children = others.extract_if(.., |process| process.parent == parent);
        let before = found.len();
        found.extend(children);
        parents.extend(found[before..].iter().map(|child| child.pid.as_raw_nonzero().get()));
    }
    found
}

/// Sums up the usage of these processes, with the processor time of ended ones.
pub(super) fn usage(processes: &[Process]) -> Usage {
    let ticks = processes
        .iter()
        .map(|process| process.cpu_ticks.saturating_add(process.waited_ticks));
    let live = time_of(ticks.sum());
    let pages: u64 = processes.iter().map(|process| process.resident_pages).sum();
    // Memory that is not resident.
    let elsewhere = processes.iter().map(|process| shown(process, &["VmSwap:", "VmPTE:"]));
    Usage {
        // An ended process that waits for its parent has no threads left.
        tasks: processes.iter().map(|process| process.threads.max(1)).sum(),
        memory: pages.saturating_mul(page_bytes()).saturating_add(elsewhere.sum()),
        cpu: live + ended().0,
    }
}

fn time_of(ticks: u64) -> Duration {
    let ticks_per_second = NonZeroU64::new(rustix::param::clock_ticks_per_second()).map_or(100, NonZeroU64::get);
    Duration::from_millis(ticks.saturating_mul(1000) / ticks_per_second)
}

/// The processor time of the processes that were seen. The kernel forgets the time of a child whose
/// parent does not wait for it, so that [`usage`] has less then.
#[derive(Debug, Default)]
pub(super) struct SeenTime {
    /// Their last time and the measurement that saw them, by number and start.
    processes: HashMap<(i32, u64), (u64, u32)>,
    measurements: u32,
    /// The processor time of processes that were not seen for long.
    ended_ticks: u64,
}

/// A process that was not seen at this many measurements has ended.
const FORGOTTEN_AFTER: u32 = 100;

impl SeenTime {
    /// Notes the processes that are there now. Returns the time of all that ever were.
    pub(super) fn add(&mut self, processes: &[Process]) -> Duration {
        self.measurements = self.measurements.wrapping_add(1);
        for process in processes {
            let name = (process.pid.as_raw_nonzero().get(), process.start);
            self.processes.insert(name, (process.cpu_ticks, self.measurements));
        }
        let now = self.measurements;
        let is_old = |seen: u32| now.wrapping_sub(seen) > FORGOTTEN_AFTER;
        let forgotten = self.processes.extract_if(|_, (_, seen)| is_old(*seen));
        self.ended_ticks += forgotten.map(|(_, (ticks, _))| ticks).sum::<u64>();
        let recent: u64 = self.processes.values().map(|(ticks, _)| ticks).sum();
        time_of(self.ended_ticks.saturating_add(recent))
    }
}

/// Returns the processor time of all descendants that have ended, and the largest resident memory
/// that one of them had, in bytes.
pub(super) fn ended() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return (Duration::ZERO, 0);
    };
    let times = [usage.user_time(), usage.system_time()].map(|time| {
        let seconds = Duration::from_secs(time.tv_sec().try_into().unwrap_or_default());
        seconds + Duration::from_micros(time.tv_usec().try_into().unwrap_or_default())
    });
    let kibibytes: u64 = usage.max_rss().try_into().unwrap_or_default();
    (times.into_iter().sum(), kibibytes << 10)
}

/// Sums up the memory, each shared page once. Costs much more than [`usage`].
pub(super) fn proportional_memory(processes: &[Process]) -> u64 {
    let by_number: HashMap<i32, &Process> = processes
        .iter()
        .map(|process| (process.pid.as_raw_nonzero().get(), process))
        .collect();
    let shares = processes.iter().map(|process| match by_number.get(&process.parent) {
        // The child has not executed a program yet (`vfork`), or never will.
        Some(parent) if have_one_memory(parent, process) => 0,
        _ => share(process),
    });
    shares.sum()
}

/// Returns whether two processes share one memory. A flag that is changed in the memory of one is
/// then visible in the memory of the other.
///
/// The flag chooses the content of core dumps, and there are none.
fn have_one_memory(a: &Process, b: &Process) -> bool {
    if a.virtual_bytes != b.virtual_bytes {
        return false;
    }
    let path = |process: &Process| format!("/proc/{}/coredump_filter", process.shown_by);
    let read = |process| u32::from_str_radix(fs::read_to_string(path(process)).ok()?.trim(), 16).ok();
    let write = |flags: u32| fs::write(path(a), format!("{flags:#x}"));
    let Some(before) = read(a).filter(|before| read(b) == Some(*before)) else {
        return false;
    };
    let changed = before ^ 1;
    let is_seen = write(changed).is_ok() && read(b) == Some(changed);
    let _ = write(before);
    is_seen
}

/// Returns the memory of a process: of each resident or swapped page its share. A process that has
/// ended since it was read has none. Its usage may have been its parent's, which counts already.
fn share(process: &Process) -> u64 {
    let proportional = || {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.shown_by)).ok()?;
        Some(kibibytes(&rollup, "Pss:")?.saturating_add(kibibytes(&rollup, "SwapPss:").unwrap_or_default()))
    };
    let resident = || {
        let now = read(process.pid).filter(|now| now.start == process.start)?;
        Some(now.resident_pages.saturating_mul(page_bytes()))
    };
    let pages = proportional().or_else(resident).unwrap_or_default();
    // A program that only reads can have large page tables with nothing in them.
    pages.saturating_add(shown(process, &["VmPTE:"]))
}

/// Returns the sum of the values that the kernel shows of a process under names.
fn shown(process: &Process, names: &[&str]) -> u64 {
    let status = fs::read(format!("/proc/{}/status", process.shown_by)).unwrap_or_default();
    // The name of the process may hold any bytes.
    let status = String::from_utf8_lossy(&status);
    names.iter().filter_map(|name| kibibytes(&status, name)).sum()
}

/// Returns the value of a line such as `Pss:   12 kB`, in bytes.
fn kibibytes(lines: &str, name: &str) -> Option<u64> {
    let line = lines.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn page_bytes() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use rustix::process::{Signal, kill_process_group};

    use super::*;

    #[test]
    fn a_name_may_have_any_bytes() {
        let stat = b"7 (a) \xff\xfe R 1 2) S 3 5 5 0 -1 0 1 2 3 4 10 20 30 40 20 0 6 0 99 4096 12 0";
        let process = parse(Pid::INIT, stat).unwrap();
        assert_eq!((process.parent, process.group), (3, Pid::from_raw(5)));
        assert_eq!(
            (
                process.cpu_ticks,
                process.waited_ticks,
                process.threads,
                process.start,
                process.resident_pages
            ),
            (30, 70, 6, 99, 12)
        );
        assert!(parse(Pid::INIT, b"7 (a").is_none());
    }

    #[test]
    fn the_time_of_a_process_that_is_gone_counts_once() {
        let stat = b"7 (a) S 3 5 5 0 -1 0 1 2 3 4 10 20 30 40 20 0 6 0 99 4096 12 0";
        let process = parse(Pid::INIT, stat).unwrap();
        let mut seen = SeenTime::default();
        let once = seen.add(std::slice::from_ref(&process));
        assert_eq!(once, time_of(30));
        // A measurement misses the process, and the next one sees it again.
        assert_eq!(seen.add(&[]), once);
        assert_eq!(seen.add(std::slice::from_ref(&process)), once);
        for _ in 0..3 * FORGOTTEN_AFTER {
            assert_eq!(seen.add(&[]), once);
        }
        assert_eq!(seen.processes.len(), 0);
    }

    #[test]
    fn children_of_children_are_found_in_both_ways() {
        let script = "sleep 60 & (sleep 60 & wait) & wait";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&shell);
        for list in [|| descendants(usize::MAX), || descendants_by_parent(getpid())] {
            let ours = || -> Vec<_> {
                list()
                    .into_iter()
                    .filter(|process| process.group == Some(group))
                    .collect()
            };
            while ours().len() < 4 {
                std::thread::yield_now();
            }
            assert_eq!(usage(&ours()).tasks, 4);
            assert!((1..=usage(&ours()).memory).contains(&proportional_memory(&ours())));
        }
        let before = [read(group).unwrap()];
        assert!(proportional_memory(&before) > 0);
        kill_process_group(group, Signal::KILL).unwrap();
        shell.wait().unwrap();
        assert_eq!(proportional_memory(&before), 0, "one that has ended has no memory");
    }
}
