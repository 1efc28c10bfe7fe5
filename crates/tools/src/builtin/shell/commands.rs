//! The part that the commands of all runs share: the sandbox, the directories and the limits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Resource, geteuid, getrlimit};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::network::{CommandNetwork, write_certificates};
use sandbox::{Namespaces, Protections, Sandbox, SandboxLimits, SandboxSettings, SandboxUnavailable};
use tasks::fair_share::FairShare;
use values::path_patterns::PathPatterns;
use values::settings::integer;
use workspace::checkout::{CheckoutError, Checkouts};

/// The shells that are tried, the best first.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// The settings of commands.
#[derive(Debug, Clone, Deserialize)]
pub struct CommandSettings {
    #[serde(skip)]
    pub sandbox: SandboxSettings,
    /// The limits of a command. `wall_time` is the most that a call may ask for.
    #[serde(skip)]
    pub limits: SandboxLimits,
    /// Where the directories of runs are made. It belongs to the service alone.
    pub directory: PathBuf,
    /// How many directories of ended runs are retained for the next run of their session.
    #[serde(deserialize_with = "integer::<_, 0, 1_000, _>")]
    pub retained_directories: usize,
    /// Patterns of files that do not become part of a session.
    pub ephemeral: PathPatterns,
    /// Further files and directories that commands may read and execute.
    #[serde(deserialize_with = "absolute_paths")]
    pub read_only: Vec<PathBuf>,
    /// Whether the service must not start if commands can't run.
    #[serde(rename = "required")]
    pub is_required: bool,
    /// The network of commands; `None` for none.
    #[serde(skip)]
    pub network: Option<CommandNetwork>,
    /// How many commands run at the same time, without background jobs.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_commands: usize,
    /// How many background jobs run at the same time.
    #[serde(skip)]
    pub max_jobs: MaxJobs,
}

/// The most background jobs at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct MaxJobs {
    /// The jobs of a run.
    #[serde(rename = "max_jobs_per_run", deserialize_with = "integer::<_, 0, 100, _>")]
    pub of_run: usize,
    /// The jobs of all runs of this process.
    #[serde(rename = "max_jobs", deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub of_process: usize,
}

impl Default for MaxJobs {
    fn default() -> Self {
        Self {
            of_run: 4,
            of_process: 64,
        }
    }
}

fn absolute_paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = Vec::<PathBuf>::deserialize(deserializer)?;
    match paths.iter().find(|path| !path.is_absolute()) {
        Some(path) => Err(D::Error::custom(format!("{} is not an absolute path", path.display()))),
        None => Ok(paths),
    }
}

/// Runs commands, if this host can.
#[derive(Debug)]
pub struct Commands {
    settings: CommandSettings,
    opened: OnceCell<Opened>,
    pub(super) slots: Arc<FairShare>,
    pub(super) job_slots: Arc<FairShare>,
    /// The tasks of background jobs.
    pub(super) jobs: TaskTracker,
}

/// The sandbox and the directories, once they are known to work.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) sandbox: Sandbox,
    pub(super) checkouts: Checkouts,
    /// `None` if the image of the service has none.
    pub(super) shell: Option<&'static Path>,
    /// The certificates that commands are to trust, if they need others than the system's.
    pub(super) certificates: Option<PathBuf>,
}

/// Why commands can't run on this host.
#[derive(Debug, thiserror::Error)]
pub enum CommandsUnavailable {
    /// The directories of runs can't be made.
    #[error("the directory of the sandbox can't be used")]
    Directory(#[from] CheckoutError),
    /// The file of certificates for commands can't be written.
    #[error("the certificates for commands can't be written")]
    Certificates(#[source] io::Error),
    /// There is no sandbox, or it is too weak.
    #[error(transparent)]
    Sandbox(#[from] SandboxUnavailable),
    /// The image of the service has no shell.
    #[error("there is no /bin/sh")]
    NoShell,
}

impl Commands {
    /// Prepares nothing yet.
    pub fn new(settings: CommandSettings) -> Arc<Self> {
        let fitting = fitting_commands(settings.limits.processes);
        Arc::new(Self {
            slots: FairShare::new(settings.max_commands.min(fitting)),
            job_slots: FairShare::new(settings.max_jobs.of_process.min(fitting)),
            settings,
            opened: OnceCell::new(),
            jobs: TaskTracker::new(),
        })
    }

    /// Tries out the sandbox and opens the directory, until that succeeds. Returns the isolation.
    pub async fn open(&self) -> Result<&Protections, CommandsUnavailable> {
        self.with_shell().await.map(|(opened, _)| opened.sandbox.protections())
    }

    /// Returns whether the service must not start if commands can't run.
    pub fn is_required(&self) -> bool {
        let sandbox = &self.settings.sandbox;
        self.settings.is_required
            || sandbox.proxy
            || sandbox.namespaces == Namespaces::Required
            || sandbox.landlock_abi > 1
            || sandbox.cgroup.is_some()
    }

    /// Returns the settings.
    pub fn settings(&self) -> &CommandSettings {
        &self.settings
    }

    /// Waits until no background job is left. No run may be in progress, since jobs end with their
    /// runs.
    pub async fn close(&self) {
        self.jobs.close();
        self.jobs.wait().await;
    }

    /// Returns the resources of commands, and the shell.
    pub(super) async fn with_shell(&self) -> Result<(&Opened, &'static Path), CommandsUnavailable> {
        let opened = self.opened().await?;
        let shell = opened.shell.ok_or(CommandsUnavailable::NoShell)?;
        Ok((opened, shell))
    }

    /// A failure is not kept: the disk may have been full, or the machine busy.
    pub(super) async fn opened(&self) -> Result<&Opened, CommandsUnavailable> {
        self.opened.get_or_try_init(|| Opened::open(&self.settings)).await
    }
}

/// Returns how many commands, and as many jobs, the host has processes for.
fn fitting_commands(processes: u32) -> usize {
    // The kernel exempts root from the limit.
    let user_limit = (!geteuid().is_root()).then(|| getrlimit(Resource::Nproc).current);
    let container = fs::read_to_string("/sys/fs/cgroup/pids.max").ok();
    let container_limit = container.and_then(|max| max.trim().parse().ok());
    let room = [user_limit.flatten(), container_limit].into_iter().flatten().min();
    fitting(room, processes)
}

/// Returns how many commands fit into so much room for processes. A tenant has half of them, so
/// that it can't leave the service and other tenants without processes.
fn fitting(room: Option<u64>, processes: u32) -> usize {
    let fitting = room.map_or(u64::MAX, |room| room / (2 * u64::from(processes)));
    usize::try_from(fitting).unwrap_or(usize::MAX).max(2)
}

impl Opened {
    async fn open(settings: &CommandSettings) -> Result<Self, CommandsUnavailable> {
        let shells = SHELLS.iter().map(Path::new);
        let shell = shells.into_iter().find(|shell| shell.exists());
        let checkouts = Checkouts::open(&settings.directory, settings.retained_directories)?;
        let sandbox = Sandbox::probe(settings.sandbox.clone(), checkouts.folder()).await?;
        let certificates = match &settings.network {
            Some(network) => write_certificates(network, checkouts.folder()),
            None => Ok(None),
        };
        Ok(Self {
            certificates: certificates.map_err(CommandsUnavailable::Certificates)?,
            sandbox,
            checkouts,
            shell,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_jobs_fit_into_the_processes_of_the_host() {
        for (room, fits) in [(None, usize::MAX), (Some(1_500), 2), (Some(5_120), 10), (Some(8), 2)] {
            assert_eq!(fitting(room, 256), fits, "{room:?}");
        }
    }
}
