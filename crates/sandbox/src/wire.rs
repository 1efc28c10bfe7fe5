//! The frames that the service, the helper and its second stage send each other over pipes.
//!
//! A frame is its kind (one byte), its length (four bytes, little-endian) and its content.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command::{CommandEnd, SandboxLimits};
use super::protections::Protections;
use super::settings::Isolation;

/// To the helper: a [`Task`] as JSON. The first frame.
pub(super) const TASK: u8 = 0;
/// To the helper: the standard input of the command, as one frame. If the task says so, more of it
/// follows without frames.
pub(super) const STDIN: u8 = 1;
/// From the helper: output of the command.
pub(super) const STDOUT: u8 = 2;
pub(super) const STDERR: u8 = 3;
/// From the helper: a [`CommandEnd`] as JSON. The last frame.
pub(super) const END: u8 = 4;
/// From the helper: [`Protections`] as JSON, in response to [`Task::Probe`].
pub(super) const PROTECTIONS: u8 = 5;

pub(super) const HEADER_BYTES: usize = 5;
/// No frame is longer. The input of a command is the largest.
const MAX_BYTES: usize = 256 << 20;

/// The task of a process of this binary.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Try out which protections hold.
    Probe(ProbeTask),
    /// Run a command and supervise it.
    Supervise(RunTask),
    /// Be the first process of a PID namespace. The helper sends this to a process of its own.
    Init,
    /// Restrict itself and become the command. The helper sends this to its second stage.
    Become(BecomeTask),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProbeTask {
    pub(super) isolation: Isolation,
    /// Landlock is used up to this version.
    pub(super) landlock_abi_limit: u32,
    pub(super) namespaces: bool,
    /// Whether commands are to reach the proxy.
    pub(super) proxy: bool,
    /// The directory for the control groups of commands.
    pub(super) cgroup: Option<PathBuf>,
    /// A directory that exists.
    pub(super) directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunTask {
    pub(super) restrictions: Restrictions,
    pub(super) command: Command,
    pub(super) limits: SandboxLimits,
    /// The directory for the control group of the command.
    pub(super) cgroup: Option<PathBuf>,
    /// The space that the files of the session take before the command begins.
    pub(super) files_bytes: Option<u64>,
    /// Whether the standard input stays open for later bytes.
    pub(super) input_stays_open: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BecomeTask {
    pub(super) restrictions: Restrictions,
    pub(super) command: Command,
    pub(super) limits: SandboxLimits,
    /// The number of the process that sends this.
    pub(super) helper: i32,
    /// The beginning of a report of an error on standard error. The command never learns it.
    pub(super) token: String,
}

/// The rights that the stage gives up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the host or the command, and none follows from another"
)]
pub(super) struct Restrictions {
    pub(super) isolation: Isolation,
    pub(super) landlock_abi: u32,
    pub(super) namespaces: bool,
    /// Whether the command is in a PID namespace, which the helper makes.
    pub(super) pid_namespace: bool,
    /// Whether the command may connect to the proxy, in a network that has nothing else.
    pub(super) proxy: bool,
    /// Whether a control group counts the memory of the command.
    pub(super) control_group: bool,
    pub(super) read_only: Vec<PathBuf>,
    /// The working directory and the scratch directory.
    pub(super) bindings: Vec<Binding>,
}

/// A directory of the command, which it may read and write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Binding {
    /// Its path outside of the mount namespace of the command.
    pub(super) outside: PathBuf,
    /// Its path for the command.
    pub(super) inside: PathBuf,
}

/// The command that the stage becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Command {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
}

/// Encodes a frame.
pub(super) fn frame(kind: u8, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = Vec::with_capacity(HEADER_BYTES + content.len());
    frame.extend(header(kind, content.len())?);
    frame.extend(content);
    Ok(frame)
}

/// Encodes a frame of JSON.
pub(super) fn json_frame(kind: u8, content: &impl Serialize) -> io::Result<Vec<u8>> {
    frame(kind, &serde_json::to_vec(content)?)
}

pub(super) fn header(kind: u8, length: usize) -> io::Result<[u8; HEADER_BYTES]> {
    let length = u32::try_from(length).map_err(|_| too_long())?;
    let [a, b, c, d] = length.to_le_bytes();
    Ok([kind, a, b, c, d])
}

/// Decodes a header: the kind and the length.
pub(super) fn decode_header(header: [u8; HEADER_BYTES]) -> io::Result<(u8, usize)> {
    let [kind, a, b, c, d] = header;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).map_err(|_| too_long())?;
    if length > MAX_BYTES {
        return Err(too_long());
    }
    Ok((kind, length))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is too long")
}

/// Reads a frame that must be of this kind. Reads no byte beyond it.
pub(super) fn read_frame(mut from: impl Read, expected: u8) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let (kind, length) = decode_header(header)?;
    if kind != expected {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame of another kind was expected",
        ));
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(content)
}

/// The last frame of the helper.
pub(super) fn end_frame(end: &CommandEnd) -> io::Result<Vec<u8>> {
    json_frame(END, end)
}

pub(super) fn protections_frame(protections: &Protections) -> io::Result<Vec<u8>> {
    json_frame(PROTECTIONS, protections)
}
