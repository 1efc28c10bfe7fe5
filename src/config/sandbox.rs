//! `[sandbox]`: where the commands of agents run, and what they may use.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::error::Fault;
use super::sandbox_network::{self, NetworkConfig};
use super::values::{duration, integer};
use sandbox::{Isolation, Namespaces};
use values::path_patterns::PathPatterns;

/// The sandbox and the limits of commands.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// What runs commands.
    pub backend: Backend,
    /// How long a command waits for a worker.
    #[serde(deserialize_with = "duration::<100, 3_600_000, _>")]
    pub worker_wait: Duration,
    /// Commands at a worker at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub worker_commands: usize,
    /// Whether commands are kept apart from the service.
    pub isolation: Isolation,
    /// Whether namespaces are used.
    pub namespaces: Namespaces,
    /// The oldest version of Landlock that will do.
    #[serde(deserialize_with = "integer::<_, 1, 100, _>")]
    pub landlock_abi: u32,
    /// A directory of cgroup v2 that is delegated to the service. Empty for none.
    pub cgroup: PathBuf,
    /// Whether the service refuses to start if commands can't run.
    pub required: bool,
    /// The directory for the files of commands. Empty for one in the system's temporary directory.
    pub directory: PathBuf,
    /// Directories of ended runs that are retained for the next run of their session.
    #[serde(deserialize_with = "integer::<_, 0, 1_000, _>")]
    pub retained_directories: usize,
    /// What commands make and is not part of a session.
    #[serde(deserialize_with = "patterns")]
    pub ephemeral: PathPatterns,
    /// Further files and directories that commands may read and execute.
    pub read_only: Vec<PathBuf>,
    /// Time from the start of a command to its end.
    #[serde(deserialize_with = "duration::<1_000, 86_400_000, _>")]
    pub max_time: Duration,
    /// Processor time of all processes of a command.
    #[serde(deserialize_with = "duration::<1_000, 86_400_000, _>")]
    pub max_cpu_time: Duration,
    /// Resident memory of all processes of a command.
    #[serde(deserialize_with = "integer::<_, 16_777_216, 1_099_511_627_776, _>")]
    pub max_memory_bytes: u64,
    /// Processes and threads of a command.
    #[serde(deserialize_with = "integer::<_, 8, 100_000, _>")]
    pub max_processes: u32,
    /// Open files of each process.
    #[serde(deserialize_with = "integer::<_, 16, 1_000_000, _>")]
    pub max_open_files: u32,
    /// What a command may add to the files and to the temporary files of its run.
    #[serde(deserialize_with = "integer::<_, 1_048_576, 1_099_511_627_776, _>")]
    pub max_disk_bytes: u64,
    /// Standard output and standard error together.
    #[serde(deserialize_with = "integer::<_, 1_024, 67_108_864, _>")]
    pub max_output_bytes: u64,
    /// Commands of all runs of this process at the same time, without background jobs.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_commands: usize,
    /// Background jobs of a run at the same time; 0 for none.
    #[serde(deserialize_with = "integer::<_, 0, 100, _>")]
    pub max_jobs_per_run: usize,
    /// Background jobs of all runs of this process at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_jobs: usize,
    pub network: NetworkConfig,
}

/// What runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// This process.
    Local,
    /// Workers, which take them from the store.
    Worker,
}

pub(super) fn check(sandbox: &SandboxConfig) -> Result<(), Fault> {
    if let Some(path) = sandbox.read_only.iter().find(|path| !path.is_absolute()) {
        let problem = format!("{} is not an absolute path", path.display());
        return Err(Fault::new(&["sandbox", "read_only"], problem));
    }
    sandbox_network::check(&sandbox.network)
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathPatterns, D::Error> {
    PathPatterns::new(Vec::<String>::deserialize(deserializer)?).map_err(D::Error::custom)
}
