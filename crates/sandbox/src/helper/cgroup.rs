//! A control group for each command, where the operator has delegated a directory of cgroup v2.
//!
//! The kernel then keeps the limits of memory and of processes itself, also between two looks of
//! the supervisor, and kills all processes of the group at once. The stage is moved into the group
//! before it becomes the command, so that every process of the command begins in it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;

use super::super::command::SandboxLimits;
use super::{Step as _, StepError, own_binary};

/// The beginning of the name of a group.
const PREFIX: &str = "command-";
/// A group can be removed once the kernel has taken its last process out: soon after it has ended.
const REMOVAL_ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// The group of a command. Dropping it removes it, if its processes have ended.
pub(super) struct Group {
    directory: PathBuf,
}

impl Group {
    /// Makes a group below a directory that is delegated to this user, see [`try_out`].
    pub(super) fn make(delegated: &Path, name: &str, limits: &SandboxLimits) -> Result<Self, StepError> {
        let directory = delegated.join(format!("{PREFIX}{name}"));
        fs::create_dir(&directory).step("make a control group")?;
        let group = Self { directory };
        group.limit(limits).step("limit a control group")?;
        Ok(group)
    }

    fn limit(&self, limits: &SandboxLimits) -> io::Result<()> {
        self.write("memory.max", &limits.memory_bytes.to_string())?;
        // Not on kernels without swap.
        let _ = self.write("memory.swap.max", "0");
        // A command without one of its processes would be in an unexpected state.
        self.write("memory.oom.group", "1")?;
        // One process more than the limit, so that the supervisor can see an excess.
        let processes = u64::from(limits.processes) + 1;
        self.write("pids.max", &processes.to_string())
    }

    /// Moves a process into the group, and with it all that it starts from now on.
    pub(super) fn add(&self, process: Pid) -> Result<(), StepError> {
        let process = process.as_raw_nonzero().to_string();
        self.write("cgroup.procs", &process).step("enter a control group")
    }

    /// Returns whether the kernel has killed the processes of the group since they have reached its
    /// limit of memory. A limit of a group above, for example of the service, is no limit of the
    /// command.
    pub(super) fn has_exceeded_memory(&self) -> bool {
        self.count("oom") > 0 && self.count("oom_kill") > 0
    }

    /// Kills all processes of the group at once. Does nothing before Linux 5.14.
    pub(super) fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    fn count(&self, event: &str) -> u64 {
        let events = fs::read_to_string(self.directory.join("memory.events")).unwrap_or_default();
        let count = events
            .lines()
            .find_map(|line| line.strip_prefix(event)?.strip_prefix(' '));
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    fn write(&self, file: &str, content: &str) -> io::Result<()> {
        write(&self.directory.join(file), content)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVAL_ATTEMPTS {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(PAUSE),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Prepares a delegated directory for groups: removes the groups of killed helpers, and tries one
/// out.
pub(super) fn try_out(delegated: &Path, name: &str) -> Result<(), StepError> {
    // Fails with "busy" if processes are in the directory itself.
    write(&delegated.join("cgroup.subtree_control"), "+memory +pids")
        .step("switch on the controllers of memory and processes in the control group")?;
    for left in fs::read_dir(delegated).step("read the control group")?.flatten() {
        if left.file_name().to_string_lossy().starts_with(PREFIX) {
            // A group with processes stays.
            let _ = fs::remove_dir(left.path());
        }
    }
    let group = Group::make(delegated, name, &SandboxLimits::default())?;
    let mut process = own_binary().spawn().step("start a process")?;
    let entered = group.add(Pid::from_child(&process));
    let inside = fs::read_to_string(group.directory.join("cgroup.procs"));
    group.kill();
    let _ = process.kill();
    let _ = process.wait();
    entered?;
    if inside.step("read a control group")?.trim() != process.id().to_string() {
        return Err("it has no process").step("rely on a control group");
    }
    Ok(())
}

/// Writes to a file that exists. It exists only in the file system of cgroups.
fn write(file: &Path, content: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(content.as_bytes())
}
