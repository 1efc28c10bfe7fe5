//! The service's side: starts helpers, and turns their messages into output and an end.

use std::fs::DirBuilder;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::command::{CommandEnd, CommandPaths, CommandSpec, Exit, NetworkSlot, Output, SCRATCH, WORKSPACE};
use super::protections::Protections;
use super::settings::{Isolation, Namespaces, SandboxSettings};
use super::wire::{self, Binding, ProbeTask, Restrictions, RunTask, Task};

/// The helper's one argument.
pub const HELPER_ARGUMENT: &str = "sandbox-exec";
/// The helper reports the end this long after the time limit, or has failed.
pub(super) const GRACE: Duration = Duration::from_secs(15);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs commands. Made once, at start.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) settings: SandboxSettings,
    protections: Protections,
}

/// Why commands can't run here.
#[derive(Debug, thiserror::Error)]
pub enum SandboxUnavailable {
    /// The helper did not report its isolation.
    #[error("the sandbox helper does not work")]
    Helper(#[source] io::Error),
    /// The kernel offers less than the configuration demands.
    #[error("{missing}; what holds: {protections}")]
    TooWeak { missing: String, protections: Protections },
}

impl Sandbox {
    /// Tries out the isolation on this host, with an existing directory. Fails if that is less than
    /// the settings demand.
    pub async fn probe(settings: SandboxSettings, directory: &Path) -> Result<Self, SandboxUnavailable> {
        let probing = timeout(PROBE_TIMEOUT, try_out(&settings, directory)).await;
        let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not report in time");
        let protections = probing
            .map_err(timed_out)
            .flatten()
            .map_err(SandboxUnavailable::Helper)?;
        match protections.shortfall(&settings) {
            Some(missing) => Err(SandboxUnavailable::TooWeak { missing, protections }),
            None => Ok(Self { settings, protections }),
        }
    }

    /// Returns the isolation on this host.
    pub fn protections(&self) -> &Protections {
        &self.protections
    }

    /// Returns where commands find directories with these paths.
    pub fn paths(&self, directory: &Path, scratch: &Path) -> CommandPaths {
        let has_own = self.protections.namespace_error.is_none();
        let [directory, scratch] = if has_own {
            [Path::new(WORKSPACE), Path::new(SCRATCH)]
        } else {
            [directory, scratch]
        };
        CommandPaths {
            directory: directory.to_owned(),
            scratch: scratch.to_owned(),
        }
    }

    /// Runs a command to its end and passes on its output as it comes. No process of it is left
    /// afterwards. Cancelling the token kills it, and so does dropping the future.
    pub async fn run(
        &self,
        spec: CommandSpec,
        output: impl FnMut(Output) + Send,
        cancel: CancellationToken,
    ) -> CommandEnd {
        let started = Instant::now();
        let backstop = spec.limits.wall_time.saturating_add(GRACE);
        let message = match timeout(backstop, self.supervised(spec, output, cancel)).await {
            Ok(Ok((end, mut helper))) => {
                let _ = timeout(GRACE, helper.child.wait()).await;
                return end;
            }
            Ok(Err(error)) => format!("the sandbox helper failed: {error}"),
            Err(_) => "the sandbox helper did not end in time".to_owned(),
        };
        CommandEnd::failed(message, started.elapsed())
    }

    async fn supervised(
        &self,
        spec: CommandSpec,
        output: impl FnMut(Output) + Send,
        cancel: CancellationToken,
    ) -> io::Result<(CommandEnd, Helper)> {
        let (stdin, network) = (spec.stdin.clone(), spec.network.clone());
        let task = wire::json_frame(wire::TASK, &Task::Supervise(self.task(spec)?))?;
        let mut helper = Helper::start(&self.settings)?;
        let sent = tokio::select! {
            sent = helper.send(&task, Some(&stdin)) => sent,
            () = cancel.cancelled() => Ok(()),
        };
        // A helper that failed at once may have closed its input, and says why in its last frame.
        if let Err(error) = sent
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error);
        }
        if let Some(network) = network {
            tokio::select! {
                () = helper.receive_listener(network) => (),
                () = cancel.cancelled() => (),
            }
        }
        let end = helper.receive(output, cancel).await?;
        Ok((end, helper))
    }

    pub(super) fn task(&self, spec: CommandSpec) -> io::Result<RunTask> {
        let outside = CommandPaths {
            directory: spec.directory.canonicalize()?,
            scratch: spec.scratch.canonicalize()?,
        };
        let inside = self.paths(&outside.directory, &outside.scratch);
        let mut variables = spec.variables;
        for (name, directory) in [("HOME", "home"), ("TMPDIR", "tmp")] {
            if !variables.contains_key(name) {
                make_private(&outside.scratch.join(directory))?;
                variables.insert(name.to_owned(), text(&inside.scratch.join(directory))?);
            }
        }
        // A path in the working directory, from either side.
        let seen = |path: PathBuf| {
            let below = path
                .strip_prefix(&spec.directory)
                .ok()
                .map(|below| inside.directory.join(below));
            below.unwrap_or(path)
        };
        let binding = |outside, inside: &PathBuf| Binding {
            outside,
            inside: inside.clone(),
        };
        let restrictions = Restrictions {
            isolation: self.settings.isolation,
            landlock_abi: self.protections.landlock_abi,
            namespaces: self.protections.namespace_error.is_none(),
            pid_namespace: self.protections.pid_namespace_error.is_none(),
            proxy: spec.network.is_some(),
            control_group: self.settings.cgroup.is_some(),
            read_only: spec.read_only,
            bindings: vec![
                binding(outside.directory, &inside.directory),
                binding(outside.scratch, &inside.scratch),
            ],
        };
        let command = wire::Command {
            program: seen(spec.program).into_os_string(),
            arguments: spec.arguments,
            cwd: seen(spec.cwd),
            directory: inside.directory.clone(),
            variables,
        };
        Ok(RunTask {
            restrictions,
            command,
            limits: spec.limits,
            cgroup: self.settings.cgroup.clone(),
            files_bytes: spec.files_bytes,
            input_stays_open: false,
        })
    }
}

/// Makes a directory that no other user can enter, unless it exists.
fn make_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn text(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path of a directory is not UTF-8"))
}

async fn try_out(settings: &SandboxSettings, directory: &Path) -> io::Result<Protections> {
    let task = ProbeTask {
        isolation: settings.isolation,
        landlock_abi_limit: settings.landlock_abi_limit,
        namespaces: settings.namespaces != Namespaces::Off && settings.isolation == Isolation::Enforced,
        proxy: settings.proxy,
        cgroup: settings.cgroup.clone(),
        directory: directory.canonicalize()?,
    };
    let mut helper = Helper::start(settings)?;
    helper
        .send(&wire::json_frame(wire::TASK, &Task::Probe(task))?, None)
        .await?;
    let protections = match helper.next().await? {
        (wire::PROTECTIONS, content) => decode(&content)?,
        (kind, _) => return Err(unexpected(kind)),
    };
    helper.child.wait().await?;
    Ok(protections)
}

/// A helper that runs, the socket that is its standard input, and the pipe from it.
#[derive(Debug)]
pub(super) struct Helper {
    pub(super) child: Child,
    /// The helper sends nothing over it but the listener of a command.
    pub(super) stdin: Option<UnixStream>,
    pub(super) stdout: ChildStdout,
}

impl Helper {
    pub(super) fn start(settings: &SandboxSettings) -> io::Result<Self> {
        let (stdin, inside) = UnixStream::pair()?;
        let inside = inside.into_std()?;
        inside.set_nonblocking(false)?;
        let mut child = Command::new(&settings.helper)
            .arg(HELPER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(inside))
            .stdout(Stdio::piped())
            // It says there why it failed, if it can't otherwise.
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no output"))?;
        let stdin = Some(stdin);
        Ok(Self { child, stdin, stdout })
    }

    /// Sends the task and the command's input. Leaves the pipe open: its end means to stop.
    pub(super) async fn send(&mut self, task: &[u8], stdin: Option<&Bytes>) -> io::Result<()> {
        let Some(pipe) = &mut self.stdin else { return Ok(()) };
        pipe.write_all(task).await?;
        if let Some(stdin) = stdin {
            pipe.write_all(&wire::header(wire::STDIN, stdin.len())?).await?;
            pipe.write_all(stdin).await?;
        }
        pipe.flush().await
    }

    /// Waits for the listener of the command. A helper that fails before says why in its last
    /// frame.
    pub(super) async fn receive_listener(&self, network: NetworkSlot) {
        let Some(socket) = &self.stdin else { return };
        let received = socket.async_io(Interest::READABLE, || listener_from(socket)).await;
        if let Ok(Some(listener)) = received {
            let _ = network.0.try_send(listener);
        }
    }

    /// Passes on output until the last frame. The command is killed once it is cancelled, and its
    /// end is awaited then too.
    async fn receive(
        &mut self,
        mut output: impl FnMut(Output) + Send,
        cancel: CancellationToken,
    ) -> io::Result<CommandEnd> {
        loop {
            let frame = {
                let Self { stdin, stdout, .. } = self;
                let mut frame = std::pin::pin!(next_frame(stdout));
                tokio::select! {
                    frame = &mut frame => frame,
                    () = cancel.cancelled(), if stdin.is_some() => {
                        *stdin = None;
                        frame.await
                    }
                }
            };
            match frame {
                Ok((wire::STDOUT, bytes)) => output(Output::Stdout(bytes)),
                Ok((wire::STDERR, bytes)) => output(Output::Stderr(bytes)),
                Ok((wire::END, content)) => return decode(&content),
                Ok((kind, _)) => return Err(unexpected(kind)),
                // It was cancelled before it had its task.
                Err(error) if self.stdin.is_none() && error.kind() == io::ErrorKind::UnexpectedEof => {
                    let end = CommandEnd::failed("", Duration::ZERO);
                    return Ok(CommandEnd {
                        exit: Exit::Cancelled,
                        ..end
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn next(&mut self) -> io::Result<(u8, Bytes)> {
        next_frame(&mut self.stdout).await
    }
}

/// Reads a message from the helper, and the listener that comes with it.
fn listener_from(socket: &UnixStream) -> io::Result<Option<TcpListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let (mut ancillary, mut byte) = (RecvAncillaryBuffer::new(&mut space), [0]);
    let bytes = &mut [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let files = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.flatten().next().map(TcpListener::from))
}

pub(super) async fn next_frame(from: &mut ChildStdout) -> io::Result<(u8, Bytes)> {
    let mut header = [0; wire::HEADER_BYTES];
    from.read_exact(&mut header).await?;
    let (kind, length) = wire::decode_header(header)?;
    let mut content = vec![0; length];
    from.read_exact(&mut content).await?;
    Ok((kind, content.into()))
}

pub(super) fn decode<T: DeserializeOwned>(content: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(content)?)
}

pub(super) fn unexpected(kind: u8) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a frame of the kind {kind} is unexpected"),
    )
}
