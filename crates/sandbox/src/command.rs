//! A command for the sandbox, its limits, and its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The limits of a command. The first limit that it exceeds ends it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Time from start to end.
    pub wall_time: Duration,
    /// Processor time of all its processes, in steps of 10 ms.
    pub cpu_time: Duration,
    /// Memory of all its processes: resident, swapped out, and their page tables. Shared pages
    /// count once.
    pub memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u32,
    /// Open files of each process.
    pub open_files: u32,
    /// The size of each file that it writes.
    pub file_bytes: u64,
    /// The growth of the working directory and of the scratch directory together, see
    /// [`CommandSpec::files_bytes`].
    pub disk_bytes: u64,
    /// Standard output and standard error together.
    pub output_bytes: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            wall_time: Duration::from_mins(2),
            cpu_time: Duration::from_mins(2),
            memory_bytes: 1 << 30,
            processes: 256,
            open_files: 1024,
            file_bytes: 1 << 30,
            disk_bytes: 2 << 30,
            output_bytes: 8 << 20,
        }
    }
}

/// Where a command finds its working directory and its scratch directory, if it has a mount
/// namespace.
pub const WORKSPACE: &str = "/workspace";
pub const SCRATCH: &str = "/scratch";

/// The paths of the directories of a command, as it sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPaths {
    pub directory: PathBuf,
    pub scratch: PathBuf,
}

/// A command, where it runs, and its limits.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// An absolute path, a path in `cwd`, or a name that is looked up in `PATH` of `variables`.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The working directory. The command may read, write and execute everything in it.
    pub directory: PathBuf,
    /// A directory for temporary files, with the same rights.
    pub scratch: PathBuf,
    /// Where the command starts: inside `directory`, absolute or relative to it.
    pub cwd: PathBuf,
    /// The whole environment. If they are missing, `HOME` and `TMPDIR` are set to directories in
    /// `scratch`.
    pub variables: BTreeMap<String, String>,
    /// The standard input of the command.
    pub stdin: Bytes,
    /// Files and directories that it may read and execute. Missing ones are skipped.
    pub read_only: Vec<PathBuf>,
    pub limits: SandboxLimits,
    /// The space in its directories that does not count as growth: the files of the session. Other
    /// files that earlier commands have left count. With `None`, no existing file counts.
    pub files_bytes: Option<u64>,
    /// Receives the listener that is the command's whole network. The command finds it at
    /// `PROXY_ADDRESS`. `None` for no network.
    pub network: Option<NetworkSlot>,
}

/// Where the runner puts the listener of a command, which may exist only once.
#[derive(Debug, Clone)]
pub struct NetworkSlot(pub(super) Sender<TcpListener>);

impl NetworkSlot {
    /// Makes a slot and the end that receives its listener. Nothing arrives if the command does not
    /// start.
    pub fn new() -> (Self, Receiver<TcpListener>) {
        let (sender, receiver) = channel(1);
        (Self(sender), receiver)
    }
}

/// Directories and files that common programs need. None holds a secret on a usual system:
/// `/etc` is listed file by file.
const READ_ONLY: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/mime.types",
    "/etc/gitconfig",
    "/etc/magic",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/perl",
    "/etc/python3",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/fonts",
];

impl CommandSpec {
    /// Describes a command without arguments that starts in the working directory, with the usual
    /// `PATH`, the default limits and the usual read-only directories.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let variables = [("PATH", path), ("LANG", "C.UTF-8")];
        Self {
            program: program.into(),
            arguments: Vec::new(),
            cwd: directory.clone(),
            directory,
            scratch: scratch.into(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            stdin: Bytes::new(),
            read_only: READ_ONLY
                .iter()
                .copied()
                .map(Path::new)
                .map(Path::to_path_buf)
                .collect(),
            limits: SandboxLimits::default(),
            files_bytes: None,
            network: None,
        }
    }
}

/// A piece of the command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    Stdout(Bytes),
    Stderr(Bytes),
}

impl Output {
    /// Returns the piece, of either stream.
    pub fn bytes(&self) -> &Bytes {
        let (Self::Stdout(bytes) | Self::Stderr(bytes)) = self;
        bytes
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The command ended by itself, with this exit code.
    Code(i32),
    /// A signal ended it that was not sent because of a limit.
    Signal(i32),
    TimedOut,
    CpuExceeded,
    MemoryExceeded,
    ProcessesExceeded,
    DiskExceeded,
    OutputExceeded,
    /// The caller cancelled it.
    Cancelled,
    /// The command could not be started or supervised.
    Failed {
        message: String,
    },
}

/// The end of a command. No process of it is left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandEnd {
    pub exit: Exit,
    /// Processor time of all its processes.
    pub cpu_time: Duration,
    /// Time from start to end, with the time to kill the remaining processes.
    pub wall_time: Duration,
    /// The largest resident memory seen, in bytes. Short peaks of several processes together are
    /// missed. The peak of the largest single process never is.
    pub peak_memory: u64,
}

impl CommandEnd {
    /// Describes a command that never ran or whose helper failed.
    pub(super) fn failed(message: impl Into<String>, wall_time: Duration) -> Self {
        let exit = Exit::Failed {
            message: message.into(),
        };
        Self {
            exit,
            cpu_time: Duration::ZERO,
            wall_time,
            peak_memory: 0,
        }
    }
}
