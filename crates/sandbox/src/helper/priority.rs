//! Processor time: commands yield to the service and to the helper.
//!
//! Most distributions share processors among sessions first (`sched_autogroup`), and among the
//! processes of a session afterwards. There, the niceness of a process means nothing to the
//! service, and a command with many sessions would get many shares. So a command has one session,
//! and the session has the niceness.

use std::fs;

use rustix::process::Pid;

/// The niceness of each process, and that of the session.
const NICENESS: i32 = 5;

/// Lowers the priority of the calling process within its session.
pub(super) fn lower_own() {
    // Not a protection: it may fail.
    let _ = rustix::process::nice(NICENESS);
}

/// Returns whether the scheduler shares processors among sessions.
pub(super) fn is_shared_by_session() -> bool {
    fs::read("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|enabled| enabled.starts_with(b"1"))
}

/// Lowers the priority of the session that a process has begun. May fail, since the kernel takes
/// ten such changes in a second, of all users together.
pub(super) fn lower_session(pid: Pid) -> bool {
    fs::write(format!("/proc/{pid}/autogroup"), NICENESS.to_string()).is_ok()
}
