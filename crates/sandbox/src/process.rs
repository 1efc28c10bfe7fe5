//! Commands that the service talks to for as long as they run.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::command::{CommandEnd, CommandSpec, Output};
use super::runner::{GRACE, Helper, Sandbox, decode, next_frame, unexpected};
use super::wire::{self, RunTask, Task};

/// The standard input of a command. Dropping it kills the command with all of its descendants.
#[derive(Debug)]
pub struct ProcessInput(OwnedWriteHalf);

/// The output of a command.
#[derive(Debug)]
pub struct ProcessOutput {
    helper: Helper,
    /// The other half of the socket to the helper, which sends nothing more.
    _socket: OwnedReadHalf,
    started: Instant,
}

impl Sandbox {
    /// Starts a command whose standard input stays open. An error of the command itself, such as a
    /// missing program, is its end.
    pub async fn start(&self, spec: CommandSpec) -> io::Result<(ProcessInput, ProcessOutput)> {
        let started = Instant::now();
        let (stdin, network) = (spec.stdin.clone(), spec.network.clone());
        let task = RunTask {
            input_stays_open: true,
            ..self.task(spec)?
        };
        let task = wire::json_frame(wire::TASK, &Task::Supervise(task))?;
        let mut helper = Helper::start(&self.settings)?;
        helper.send(&task, Some(&stdin)).await?;
        if let Some(network) = network {
            helper.receive_listener(network).await;
        }
        let socket = helper.stdin.take();
        let socket = socket.ok_or_else(|| io::Error::other("the helper has no input"))?;
        let (read, write) = socket.into_split();
        let output = ProcessOutput {
            helper,
            _socket: read,
            started,
        };
        Ok((ProcessInput(write), output))
    }
}

impl ProcessInput {
    /// Writes to the command. Waits while it does not read.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }
}

impl ProcessOutput {
    /// Passes on the output until the command has ended. Then no process of it is left. The command
    /// waits while the output is not received, and it is discarded once nobody receives it.
    pub async fn pass_on(mut self, output: &Sender<Output>) -> CommandEnd {
        loop {
            match next_frame(&mut self.helper.stdout).await {
                Ok((wire::STDOUT, bytes)) => send(output, Output::Stdout, bytes).await,
                Ok((wire::STDERR, bytes)) => send(output, Output::Stderr, bytes).await,
                Ok((wire::END, content)) => {
                    let _ = timeout(GRACE, self.helper.child.wait()).await;
                    return decode(&content).unwrap_or_else(|error| self.failed(&error));
                }
                Ok((kind, _)) => return self.failed(&unexpected(kind)),
                Err(error) => return self.failed(&error),
            }
        }
    }

    fn failed(&self, error: &io::Error) -> CommandEnd {
        CommandEnd::failed(format!("the sandbox helper failed: {error}"), self.started.elapsed())
    }
}

async fn send(output: &Sender<Output>, kind: fn(Bytes) -> Output, bytes: Bytes) {
    // Without a receiver, the command is being killed.
    let _ = output.send(kind(bytes)).await;
}
