//! Processes that live longer than a call: servers that the service talks to over their standard
//! input and output. They run in the sandbox of commands, with its limits, and have no workspace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::mpsc::Sender;

use super::commands::{Commands, CommandsUnavailable, Opened};
use super::network::{self, ServedNetwork};
use sandbox::{CommandEnd, CommandSpec, Isolation, Output, ProcessInput, ProcessOutput};
use workspace::checkout::{CheckoutError, ScratchDirectory};

/// No limit: a process may run for as long as the service.
const FOREVER: Duration = Duration::MAX;
/// How much of a script the kernel reads to find its interpreter, in bytes.
const MAX_FIRST_LINE: u64 = 256;

/// A process, with its resources and limits.
#[derive(Debug, Clone)]
pub(crate) struct ProcessSettings {
    /// An absolute path, or a name that is looked up in `PATH`.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Variables besides `PATH`, `LANG`, `HOME` and `TMPDIR`, which it can replace.
    pub(crate) variables: BTreeMap<String, String>,
    /// Files and directories that it may read and execute, in addition to the ones for all
    /// commands.
    pub(crate) read_only: Vec<PathBuf>,
    /// Whether it has the network of commands.
    pub(crate) has_network: bool,
    /// Processor time; `None` for no limit.
    pub(crate) cpu_time: Option<Duration>,
}

/// The output of a process that runs, and its directory.
#[derive(Debug)]
pub(crate) struct Process {
    output: ProcessOutput,
    network: Option<ServedNetwork>,
    /// Removed at the end.
    _directory: ScratchDirectory,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// This host can't run commands.
    #[error(transparent)]
    Unavailable(#[from] CommandsUnavailable),
    /// Its directory can't be made.
    #[error("its directory can't be made")]
    Directory(#[from] CheckoutError),
    /// The sandbox has failed.
    #[error("the sandbox helper failed")]
    Sandbox(#[from] io::Error),
}

impl Commands {
    /// Returns whether commands have a network.
    pub(crate) fn have_network(&self) -> bool {
        self.settings().network.is_some()
    }

    /// Finds the file that a process would execute. The error says why it can't be executed, and
    /// names the key that allows it.
    pub(crate) fn find_program(&self, settings: &ProcessSettings) -> Result<PathBuf, String> {
        let found = self.find(&settings.program, settings)?;
        for interpreter in interpreters(&found) {
            let interpreter = self.find(&interpreter, settings);
            interpreter.map_err(|problem| format!("the interpreter of {}: {problem}", found.display()))?;
        }
        Ok(found)
    }

    fn find(&self, program: &Path, settings: &ProcessSettings) -> Result<PathBuf, String> {
        let usual = CommandSpec::new(program, "", "");
        let path = settings.variables.get("PATH").or_else(|| usual.variables.get("PATH"));
        let path = path.map_or("", String::as_str);
        let candidates: Vec<_> = if program.is_absolute() {
            vec![program.to_owned()]
        } else {
            std::env::split_paths(path)
                .map(|directory| directory.join(program))
                .collect()
        };
        let shown = program.to_string_lossy();
        // A script from Windows names an interpreter that ends in \r.
        let shown = shown.escape_debug();
        let Some(found) = candidates.into_iter().find(|path| is_executable(path)) else {
            return Err(if program.is_absolute() {
                format!("{shown} is no file that can be executed")
            } else {
                format!("no directory of its `PATH` has the program {shown}: {path}")
            });
        };
        let shared = self.settings();
        if shared.sandbox.isolation == Isolation::None {
            return Ok(found);
        }
        let mut readable = usual
            .read_only
            .iter()
            .chain(&shared.read_only)
            .chain(&settings.read_only);
        let real = found.canonicalize().unwrap_or_else(|_| found.clone());
        let may_execute = readable.any(|directory| {
            real.starts_with(directory)
                || directory
                    .canonicalize()
                    .is_ok_and(|directory| real.starts_with(directory))
        });
        if may_execute {
            return Ok(found);
        }
        let real = real.display();
        Err(format!(
            "the sandbox does not let it execute {real}: add its directory to `read_only`"
        ))
    }

    /// Starts a process in an empty directory. Dropping its input kills it.
    pub(crate) async fn start(&self, settings: ProcessSettings) -> Result<(ProcessInput, Process), ProcessError> {
        let opened = self.opened().await?;
        let directory = opened.checkouts.scratch_directory()?;
        let has_network = settings.has_network;
        let mut spec = self.spec(settings, opened, &directory);
        let network = self.settings().network.as_ref().filter(|_| has_network);
        let network = network.map(|network| ServedNetwork::attach(network, &mut spec));
        let (input, output) = opened.sandbox.start(spec).await?;
        let process = Process {
            output,
            network,
            _directory: directory,
        };
        Ok((input, process))
    }

    fn spec(&self, settings: ProcessSettings, opened: &Opened, directory: &ScratchDirectory) -> CommandSpec {
        let shared = self.settings();
        let mut spec = CommandSpec::new(settings.program, directory.files(), directory.scratch());
        spec.arguments = settings.arguments;
        if let Some(network) = shared.network.as_ref().filter(|_| settings.has_network) {
            spec.variables
                .extend(network::variables(network, opened.certificates.as_deref()));
            spec.read_only.extend(opened.certificates.clone());
        }
        spec.variables.extend(settings.variables);
        spec.read_only.extend(shared.read_only.iter().cloned());
        spec.read_only.extend(settings.read_only);
        spec.limits = shared.limits.clone();
        spec.limits.wall_time = FOREVER;
        spec.limits.cpu_time = settings.cpu_time.unwrap_or(FOREVER);
        spec.limits.output_bytes = u64::MAX;
        spec
    }
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Returns the interpreter that the first line of a script names, and the program that `env` would
/// look up.
fn interpreters(script: &Path) -> Vec<PathBuf> {
    let mut start = Vec::new();
    // A program that can be executed and not read is no script.
    let _unreadable = File::open(script).map(|file| file.take(MAX_FIRST_LINE).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    let line = start.split('\n').next().and_then(|line| line.strip_prefix("#!"));
    let mut words = line
        .unwrap_or_default()
        .split([' ', '\t'])
        .filter(|word| !word.is_empty());
    let interpreter = words.next();
    let is_env = interpreter.is_some_and(|interpreter| Path::new(interpreter).ends_with("env"));
    let looked_up = words.find(|word| *word != "-S").filter(|_| is_env);
    // Other options and variables of `env` can change its lookup.
    let looked_up = looked_up.filter(|word| !word.starts_with('-') && !word.contains('='));
    interpreter.into_iter().chain(looked_up).map(PathBuf::from).collect()
}

impl Process {
    /// Passes on the output until no process is left.
    pub(crate) async fn pass_on(self, output: &Sender<Output>) -> CommandEnd {
        let Self {
            output: process,
            network,
            _directory,
        } = self;
        let serving = OptionFuture::from(network.map(ServedNetwork::serve));
        tokio::select! {
            end = process.pass_on(output) => end,
            Some(never) = serving => match never {},
        }
    }
}
