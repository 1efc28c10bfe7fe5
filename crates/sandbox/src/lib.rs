//! The process sandbox: runs one command with nothing but a working directory and limits.
//!
//! The service starts a helper, which is the same binary (`agent-runtime sandbox-exec`). The helper
//! starts a second stage of itself. The second stage gives up every right and then becomes the
//! command:
//!
//! ```text
//! service ── runner ──pipes──▶ helper: supervises, kills ──▶ stage: restricts itself ─exec─▶ command
//! ```
//!
//! The service and the helper share a socket, a pipe and nothing else: no variable, no other file
//! descriptor and no terminal. When the service closes its end or dies, the helper kills every
//! descendant.
//!
//! A command reads all of its input at once (`runner.rs`), or the service writes to it while it
//! runs (`process.rs`).
//!
//! A command has no network. If it is to have one, the helper makes a network that consists of a
//! loopback interface with one listener, and gives this listener to the service. So the command
//! reaches only the proxy that the service offers there.
//!
//! The means of isolation are Landlock for files, seccomp for sockets and for dangerous system
//! calls, and no capabilities. These work without privileges and in a default container. User, PID
//! and mount namespaces are added where the kernel offers them. A command then finds its directory
//! at `/workspace`, and its temporary files at `/scratch`.
//!
//! Limits of the isolation:
//!
//! - Landlock hides content, not existence: a command can ask for the size and the time of a file
//!   by its path. Without namespaces it can also change the mode, the times and the attributes of
//!   files outside that belong to its user. So the service should not run as root then.
//! - Of a removed file that a process has mapped but not open, the part that is mapped counts.
//! - A background job can move directories while another command of its run writes into them, so
//!   that neither finds all. It counts as a full disk only if directories are gone again and again.
//! - The processor time of a process counts while it is seen or once its parent has waited for it.
//!   The time of short processes for which no parent waits does not count.
//! - If the helper is killed, the kernel kills the command itself, but not its children, except in
//!   a PID namespace.
//! - Memory of the kernel counts where it is the memory of page tables, mappings and sockets. Other
//!   memory of the kernel, such as full pipes, does not. A host or a container should have a limit
//!   of its own.
//! - Between two measurements, memory and disk can exceed their limits by what fits into that time:
//!   20 ms, and 50 ms for the disk, sockets and shared memory, or more on a busy host. With a
//!   control group, memory can't.
//! - Before Linux 6.12 and without a PID namespace, a fork bomb is killed process by process. On a
//!   busy host that can take longer than the service waits for, most of all as root.
//! - Before Linux 6.12 a command can signal nobody but its own process group.
//! - `setsid` has no effect before Linux 6.12, and where the scheduler shares processors among
//!   sessions.

mod command;
mod process;
mod protections;
mod runner;
mod settings;

mod wire;

#[cfg(target_os = "linux")]
mod helper;

pub use self::command::{
    CommandEnd, CommandPaths, CommandSpec, Exit, NetworkSlot, Output, SCRATCH, SandboxLimits, WORKSPACE,
};
#[cfg(target_os = "linux")]
pub use self::helper::helper_main;
pub use self::process::{ProcessInput, ProcessOutput};
pub use self::protections::{PROXY_ADDRESS, Protections};
pub use self::runner::{HELPER_ARGUMENT, Sandbox, SandboxUnavailable};
pub use self::settings::{Isolation, Namespaces, SandboxSettings};

/// There is no sandbox on this system. `Sandbox::probe` reports that the helper does not work.
#[cfg(not(target_os = "linux"))]
pub fn helper_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
