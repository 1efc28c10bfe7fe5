//! The kernel's figures of processes and of the machine. Linux only; reads `/proc` and nothing
//! else.

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

/// Returns the processor time that a process has used, its own and the kernel's for it.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field
    // after it.
    let (_, fields) = stat.rsplit_once(')').context("a process without a name")?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || {
        times
            .next()
            .context("no processor times")?
            .context("processor times are no numbers")
    };
    Ok(Duration::from_secs_f64((next()? + next()?) / TICKS_PER_SECOND))
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
