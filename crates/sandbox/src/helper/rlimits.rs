//! Limits that the kernel keeps for each process. The helper enforces the limits of all processes
//! together.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::command::SandboxLimits;

/// The writable memory that a process may have beyond the memory limit, since it need not touch it.
/// Bounds the memory that a process can take between two measurements.
const UNTOUCHED_BYTES: u64 = 1 << 30;

/// Applies the limits to the calling process and to all that it starts.
pub(super) fn apply(limits: &SandboxLimits, has_user_namespace: bool) -> io::Result<()> {
    // One byte: too small for any file. It is the only value for which the kernel does not start
    // the host's crash handler either.
    limit(Resource::Core, 1, 1)?;
    limit(Resource::Msgqueue, 0, 0)?;
    limit(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    let files = limits.open_files.into();
    limit(Resource::Nofile, files, files)?;
    let data = limits.memory_bytes.saturating_mul(2).saturating_add(UNTOUCHED_BYTES);
    limit(Resource::Data, data, data)?;
    // Forbids a priority above others.
    limit(Resource::Rtprio, 0, 0)?;
    limit(Resource::Nice, 0, 0)?;
    if has_user_namespace {
        // Elsewhere this would count all processes of the user. The kernel exempts root from it.
        // The helper is to see the excess.
        let processes = u64::from(limits.processes).saturating_mul(2);
        limit(Resource::Nproc, processes, processes)?;
    }
    // The helper sees the sum of all processes first, unless it is held up.
    let cpu = limits.cpu_time.as_secs().saturating_add(2);
    limit(Resource::Cpu, cpu, cpu.saturating_add(1))
}

/// Lowers a limit. A lower limit that is in force already stays.
fn limit(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let before = getrlimit(resource).maximum;
    let maximum = before.map_or(maximum, |before| before.min(maximum));
    let (current, maximum) = (Some(current.min(maximum)), Some(maximum));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
