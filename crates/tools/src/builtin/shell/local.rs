//! Runs commands in this process: in a directory with the files, in the sandbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::OptionFuture;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::backend::{BackendError, CommandBackend, CommandOutcome, JobBackend, ShellCommand};
use super::commands::{CommandSettings, Commands, Opened};
use super::network::{self, ServedNetwork};
use super::report::end_note;
use super::state::{
    MAX_STATE_BYTES, SCRIPT, STATE_FILE, TRACE, read_state, stored_directory, stored_variables, variables_in,
};
use sandbox::{CommandEnd, CommandPaths, CommandSpec, Exit, Output, Sandbox};
use tasks::fair_share::Share;
use values::causes::with_causes;
use values::session::ShellState;
use values::tenant::TenantId;
use workspace::checkout::{Checkout, CheckoutError, CommandDirectories, Scanned, SkippedFiles};
use workspace::environment::RunningJob;
use workspace::{Entry, Tree};

/// The error of a command that has waited for its whole time.
const NO_SLOT: &str = "as many commands as may run at the same time in this service were running for the whole time \
                       of this call; try again later";
/// A file takes up its bytes, in blocks of at most this size, and so does a directory.
const BLOCK_BYTES: u64 = 4096;

#[async_trait]
impl CommandBackend for Commands {
    async fn run(
        &self,
        mut command: ShellCommand,
        output: &mut (dyn FnMut(Output) + Send),
        cancel: CancellationToken,
    ) -> Result<CommandOutcome, BackendError> {
        let begun = Instant::now();
        let slot = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Exit::Cancelled),
            slot = self.slots.take(command.tree.tenant(), 1) => Ok(slot),
            () = tokio::time::sleep(command.wall_time) => Err(Exit::Failed {
                message: NO_SLOT.to_owned(),
            }),
        };
        match slot {
            Ok(_slot) => {
                command.wall_time = command.wall_time.saturating_sub(begun.elapsed());
                self.host().await?.run(command, output, cancel).await
            }
            Err(exit) => Ok(not_begun(command, exit, begun.elapsed())),
        }
    }

    fn jobs(&self) -> Option<&dyn JobBackend> {
        Some(self)
    }
}

#[async_trait]
impl JobBackend for Commands {
    fn slot(&self, tenant: &TenantId) -> Option<Share> {
        self.job_slots.try_take(tenant, 1)
    }

    async fn start(&self, mut command: ShellCommand, job: RunningJob, slot: Share) -> Result<Checkout, BackendError> {
        let host = self.host().await?;
        let (begun, time, cancelled) = (Instant::now(), command.wall_time, job.cancellation());
        let failed = |words: &str| Err(BackendError::Failed(words.to_owned()));
        let mut checkout = tokio::select! {
            checkout = host.checkout(&mut command) => checkout?,
            () = cancelled.cancelled() => return failed("the run was cancelled or stopped"),
            () = sleep(time) => return failed("the time of the run is spent"),
        };
        checkout.begin_live(&host.settings.ephemeral).await?;
        let mut spec = host.spec(&command, &checkout.for_command()).await;
        spec.arguments = vec!["-c".into(), command.command.into()];
        spec.limits.wall_time = time.saturating_sub(begun.elapsed());
        let network = host.network(&mut spec);
        let sandbox = host.opened.sandbox.clone();
        let running = async move {
            let (mut print, cancel) = (|output: Output| job.print(output.bytes()), job.cancellation());
            let end = supervise(&sandbox, spec, network, &mut print, cancel).await;
            drop(slot);
            let note = end_note(&end.exit, end.wall_time);
            job.finish(note.unwrap_or_else(|| "exit code 0".to_owned()));
        };
        self.jobs.spawn(running.in_current_span());
        Ok(checkout)
    }
}

/// Returns the outcome of a command that has not begun: everything is as before.
fn not_begun(command: ShellCommand, exit: Exit, wall_time: Duration) -> CommandOutcome {
    CommandOutcome {
        exit,
        wall_time,
        tree: command.tree,
        checkout: command.checkout,
        shell: None,
        skipped: SkippedFiles::default(),
    }
}

impl Commands {
    async fn host(&self) -> Result<Host<'_>, BackendError> {
        let opened = self.with_shell().await;
        let (opened, shell) = opened.map_err(|error| BackendError::Unavailable(with_causes(&error)))?;
        Ok(Host {
            settings: self.settings(),
            opened,
            shell,
        })
    }
}

/// A host that can run commands.
struct Host<'a> {
    settings: &'a CommandSettings,
    opened: &'a Opened,
    shell: &'static Path,
}

impl Host<'_> {
    async fn run(
        &self,
        mut command: ShellCommand,
        output: &mut (dyn FnMut(Output) + Send),
        cancel: CancellationToken,
    ) -> Result<CommandOutcome, BackendError> {
        let (begun, time) = (Instant::now(), command.wall_time);
        let checkout = tokio::select! {
            checkout = self.checkout(&mut command) => Ok(checkout?),
            () = cancel.cancelled() => Err(Exit::Cancelled),
            () = sleep(time) => Err(Exit::TimedOut),
        };
        let mut checkout = match checkout {
            Ok(checkout) => checkout,
            Err(exit) => return Ok(not_begun(command, exit, begun.elapsed())),
        };
        let directories = checkout.for_command();
        let base = self.base_variables();
        let mut spec = self.spec(&command, &directories).await;
        let network = self.network(&mut spec);
        let end = supervise(&self.opened.sandbox, spec, network, output, cancel).await;
        let scanned = match checkout.scan(&self.settings.ephemeral).await {
            // The files stay where they are, so that a command can remove some.
            Err(error) if error.exceeds_limits() => over_limit(command.tree, &error),
            scanned => scanned?,
        };
        let left = checkout.take_scratch_file(STATE_FILE, MAX_STATE_BYTES).await;
        let left = left.ok().flatten();
        let paths = self.paths(&directories);
        let shell = left.and_then(|bytes| read_state(&bytes, &paths, &base));
        let other = command.shell.map(|before| before.other).unwrap_or_default();
        let checkout = match end.exit {
            // Temporary files, and files that trees leave out, go with the directory. Otherwise no
            // command of the run could begin any more.
            Exit::DiskExceeded if !checkout.is_live() => {
                checkout.abandon();
                None
            }
            Exit::Failed { .. } => {
                checkout.abandon();
                None
            }
            _ => Some(checkout),
        };
        Ok(CommandOutcome {
            exit: end.exit,
            wall_time: end.wall_time,
            tree: scanned.tree,
            checkout,
            shell: shell.map(|shell| ShellState { other, ..shell }),
            skipped: scanned.skipped,
        })
    }

    /// Returns a directory with the files of a command.
    async fn checkout(&self, command: &mut ShellCommand) -> Result<Checkout, BackendError> {
        match command.checkout.take() {
            Some(mut checkout) => {
                checkout.update(&command.tree).await?;
                Ok(checkout)
            }
            None => Ok(self.opened.checkouts.take(&command.line, &command.tree).await?),
        }
    }

    /// Gives a command its network, if commands have one.
    fn network(&self, spec: &mut CommandSpec) -> Option<ServedNetwork> {
        let network = self.settings.network.as_ref()?;
        Some(ServedNetwork::attach(network, spec))
    }

    async fn spec(&self, command: &ShellCommand, directories: &CommandDirectories) -> CommandSpec {
        let (state, paths) = (command.shell.as_ref(), self.paths(directories));
        let mut spec = CommandSpec::new(self.shell, &directories.files, &directories.scratch);
        let state_file = paths.scratch.join(STATE_FILE);
        spec.variables = self.base_variables();
        spec.arguments = vec![
            "-c".into(),
            SCRIPT.into(),
            "shell".into(),
            command.command.clone().into(),
            state_file.into(),
        ];
        spec.cwd = start_directory(&directories.files, state, &command.tree).await;
        spec.variables.extend(variables_in(&paths, stored_variables(state)));
        let trace = command.trace.map(|trace| (TRACE.to_owned(), trace.to_string()));
        spec.variables.extend(trace);
        spec.read_only.extend(self.settings.read_only.iter().cloned());
        spec.read_only.extend(self.opened.certificates.clone());
        spec.limits = self.settings.limits.clone();
        spec.files_bytes = files_bytes(&command.tree).await;
        spec.limits.wall_time = command.wall_time.min(spec.limits.wall_time);
        spec
    }

    /// Returns where a command finds its directories.
    fn paths(&self, directories: &CommandDirectories) -> CommandPaths {
        self.opened.sandbox.paths(&directories.files, &directories.scratch)
    }

    /// Returns the variables that every command begins with.
    fn base_variables(&self) -> BTreeMap<String, String> {
        let mut variables = CommandSpec::new("", "", "").variables;
        if let Some(network) = &self.settings.network {
            variables.extend(network::variables(network, self.opened.certificates.as_deref()));
        }
        variables
    }
}

/// Runs a command to its end, with its network.
async fn supervise(
    sandbox: &Sandbox,
    spec: CommandSpec,
    network: Option<ServedNetwork>,
    output: &mut (dyn FnMut(Output) + Send),
    cancel: CancellationToken,
) -> CommandEnd {
    let mut running = pin!(sandbox.run(spec, output, cancel));
    let mut serving = pin!(OptionFuture::from(network.map(ServedNetwork::serve)));
    tokio::select! {
        end = &mut running => end,
        Some(never) = &mut serving => match never {},
    }
}

/// Returns the files as they were, and says so.
fn over_limit(tree: Tree, error: &CheckoutError) -> Scanned {
    let mut skipped = SkippedFiles::default();
    let reason = format!("{error}; remove files, and the session gets the rest with the next command");
    skipped.add("all changes since the last command".to_owned(), reason);
    Scanned { tree, skipped }
}

/// Returns the space that the files of a tree take up at most.
async fn files_bytes(tree: &Tree) -> Option<u64> {
    let totals = tree.totals().await.ok()?;
    let blocks = totals.entries().saturating_mul(BLOCK_BYTES);
    Some(totals.bytes.saturating_add(blocks))
}

/// Returns where the shell starts: the directory that the last one left, if the workspace still has
/// it.
async fn start_directory(files: &Path, state: Option<&ShellState>, tree: &Tree) -> PathBuf {
    match stored_directory(state) {
        Some(path) if matches!(tree.entry(&path).await, Ok(Some(Entry::Directory { .. }))) => files.join(path.as_str()),
        _ => files.to_owned(),
    }
}
