//! The kernel's figures of processes and of the machine. Linux only; reads `/proc` and nothing
//! else.
//!
//! The processor time of a whole process includes its former threads, and has a resolution of 10
//! ms. That of a thread is exact.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The unit of processor times in `/proc`; the kernel shows 100 per second on every architecture
/// that matters here.
const TICKS_PER_SECOND: f64 = 100.0;

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// In use now.
    pub(crate) resident: u64,
    /// The most that was ever in use.
    pub(crate) peak: u64,
}

/// Where the times of a process stand in `stat`, counted after its name: its own in user mode and
/// in the kernel, and then those of its former children.
const OWN_TIMES: usize = 11;
const TIMES_OF_CHILDREN: usize = 13;

/// Returns the processor time that a process has used, its own and the kernel's for it.
pub(crate) fn cpu_time(process: u32) -> Result<Duration> {
    times(process, OWN_TIMES)
}

/// Returns the processor time of a process without threads and of its children, also of those that
/// have ended.
pub(crate) fn cpu_time_with_children(process: u32) -> Result<Duration> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let mut sum = scheduled(&format!("/proc/{process}"))? + times(process, TIMES_OF_CHILDREN)?;
    for child in children.split_ascii_whitespace() {
        // One that has just ended is about to be counted among the former children.
        sum += scheduled(&format!("/proc/{child}")).unwrap_or_default();
    }
    Ok(sum)
}

/// Returns the processor time of the threads of a process that have this name.
pub(crate) fn cpu_time_of_threads(process: u32, name: &str) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let folder = thread?.path();
        let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        if comm.trim_end() == name {
            sum += scheduled(&folder.to_string_lossy())?;
        }
    }
    Ok(sum)
}

/// Returns the process that started this one.
pub(crate) fn parent(process: u32) -> Result<u32> {
    let parent = fields_after_name(process)?.into_iter().nth(1);
    parent
        .context("a process without a parent")?
        .parse()
        .context("a parent is no number")
}

/// Returns the name of a process.
pub(crate) fn name(process: u32) -> Result<String> {
    let path = format!("/proc/{process}/comm");
    let name = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    Ok(name.trim_end().to_owned())
}

/// Returns the time for which the scheduler has let a thread run.
fn scheduled(folder: &str) -> Result<Duration> {
    let path = format!("{folder}/schedstat");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let nanoseconds = text.split_ascii_whitespace().next().context("no time")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn times(process: u32, first: usize) -> Result<Duration> {
    let fields = fields_after_name(process)?;
    let pair = fields.get(first..first + 2).context("no processor times")?;
    let mut ticks = 0.0;
    for field in pair {
        ticks += field.parse::<f64>().context("processor times are no numbers")?;
    }
    Ok(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

fn fields_after_name(process: u32) -> Result<Vec<String>> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    // The name in parentheses may have spaces.
    let (_, fields) = stat.rsplit_once(')').context("a process without a name")?;
    Ok(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Returns the memory of a process.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    Ok(Memory {
        resident: kilobytes(&status, "VmRSS:")? * 1024,
        peak: kilobytes(&status, "VmHWM:")? * 1024,
    })
}

/// Returns how many files this process may have open.
pub(crate) fn open_files_limit() -> Result<u64> {
    let limits = fs::read_to_string("/proc/self/limits").context("read /proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line
        .and_then(|line| line.split_ascii_whitespace().next())
        .context("no limit of open files")?;
    Ok(soft.parse().unwrap_or(u64::MAX))
}

/// Describes the machine in one line.
pub(crate) fn machine() -> Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |model| model.trim_start_matches(['\t', ' ', ':']));
    let cores = std::thread::available_parallelism().context("count the cores")?;
    let memory = kilobytes(
        &fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?,
        "MemTotal:",
    )?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("read the kernel's version")?;
    let gigabytes = memory / (1024 * 1024);
    Ok(format!(
        "{cores} cores ({model}), {gigabytes} GB of memory, Linux {}",
        kernel.trim()
    ))
}

fn kilobytes(text: &str, key: &str) -> Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let value = value.and_then(|value| value.split_ascii_whitespace().next());
    value
        .with_context(|| format!("no {key}"))?
        .parse()
        .with_context(|| format!("{key} is no number"))
}
