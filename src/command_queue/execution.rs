//! Runs one command that a worker has taken, and stores its output while it runs, then the new
//! files, then the outcome.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::PAUSE;
use super::host::Host;
use super::messages::{End, Outcome, Request};
use super::running::{Reason, Running};
use sandbox::{Exit, Output};
use store::commands::{CommandLease, MAX_COMMAND_TEXT_BYTES, MAX_OUTPUT_PIECE_BYTES, OutputPiece, TakenCommand};
use store::contents::PatientContents;
use tools::{BackendError, CommandBackend as _, CommandOutcome, ShellCommand};
use values::causes::with_causes;
use workspace::Tree;
use workspace::checkout::SkippedFiles;

/// How often output is stored.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(100);

/// A command that a worker has taken.
pub(super) struct Execution<'a> {
    pub(super) host: &'a Host,
    pub(super) lease: CommandLease,
    pub(super) running: Arc<Running>,
}

impl Execution<'_> {
    /// Runs the command to its end and stores the outcome.
    pub(super) async fn run(&self, taken: TakenCommand) {
        let mut sent = Sent::default();
        let outcome = self.outcome(taken, &mut sent).await;
        self.store(outcome, sent).await;
    }

    async fn outcome(&self, taken: TakenCommand, sent: &mut Sent) -> Outcome {
        let request: Request = match serde_json::from_str(&taken.request) {
            Ok(request) => request,
            Err(error) => return Outcome::failed(format!("the worker can't read the command: {error}")),
        };
        let host = self.host;
        // No longer than the worker has its lease.
        let running = Arc::clone(&self.running);
        let contents = PatientContents::new(&taken.key.tenant, Arc::clone(&host.store) as _, None, move || {
            !running.is_lost()
        });
        let tree = match request.tree {
            Some(hash) => Tree::open(contents, host.workspace, hash),
            None => Tree::empty(contents, host.workspace),
        };
        let left = request.deadline.map(|deadline| (deadline - host.clock.now()).to_std());
        let left = left.map_or(Duration::MAX, Result::unwrap_or_default);
        let command = ShellCommand {
            execution_id: taken.execution_id,
            line: request.line,
            command: request.command,
            checkout: host.directories.take(&taken.key.tenant, taken.execution_id).await,
            tree,
            shell: request.shell,
            wall_time: request.wall_time.min(left),
            deadline: request.deadline,
            trace: request.trace,
        };
        match self.supervise(command, sent).await {
            Ok(outcome) => self.saved(&taken, outcome).await,
            Err(error) => Outcome::failed(error.to_string()),
        }
    }

    /// Runs the command to its end, and stores its output meanwhile.
    async fn supervise(&self, command: ShellCommand, sent: &mut Sent) -> Result<CommandOutcome, BackendError> {
        let buffer = Mutex::new(BytesMut::new());
        let mut add = |output| {
            let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
            buffer.lock().extend_from_slice(&bytes);
        };
        let mut running = pin!(self.host.commands.run(command, &mut add, self.running.stop.clone()));
        let mut ticks = interval(OUTPUT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut running => break ended,
                _ = ticks.tick() => {
                    sent.unsent.unsplit(std::mem::take(&mut *buffer.lock()));
                    // The command's own output waits meanwhile, so it can't outrun the store.
                    self.send(sent, 1).await;
                }
            }
        };
        sent.unsent.unsplit(std::mem::take(&mut *buffer.lock()));
        ended
    }

    /// Stores output until less than some bytes are left. A piece that can't be stored now is
    /// stored later.
    async fn send(&self, sent: &mut Sent, until: usize) {
        while sent.unsent.len() >= until && !self.running.is_lost() {
            let piece = sent.next_piece();
            let now = self.host.clock.now();
            match self.host.store.command_add_output(&self.lease, &piece, now).await {
                Ok(true) => sent.has_sent(&piece),
                Ok(false) => self.running.lose(),
                Err(error) if error.is_transient() => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "the output of a command is stored later"
                    );
                    return;
                }
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the output of a command can't be stored"
                    );
                    self.running.lose();
                }
            }
        }
    }

    /// Stores the new files and retains the directory for the next command.
    async fn saved(&self, taken: &TakenCommand, outcome: CommandOutcome) -> Outcome {
        let tree = match outcome.tree.save().await {
            Ok(tree) => tree,
            Err(error) => {
                return Outcome::failed(format!(
                    "the files of the workspace can't be changed: {}",
                    with_causes(&error)
                ));
            }
        };
        let hash = tree.hash();
        if let Some(checkout) = outcome.checkout {
            self.host.directories.put(taken.execution_id, checkout, tree).await;
        }
        if outcome.exit == Exit::Cancelled {
            match self.running.reason() {
                Some(Reason::Shutdown) => {
                    return Outcome::failed(
                        "the worker was shut down and killed the command. The changes of the files are lost; other \
                         effects are uncertain",
                    );
                }
                Some(Reason::Abandoned | Reason::Lost) => {
                    return Outcome::failed(
                        "the worker has killed the command, since the service no longer waited for it",
                    );
                }
                Some(Reason::Cancelled) | None => (),
            }
        }
        let SkippedFiles { named, more } = outcome.skipped;
        let named = named.into_iter();
        Outcome::Ended(Box::new(End {
            exit: outcome.exit,
            wall_time: outcome.wall_time,
            tree: hash,
            shell: outcome.shell,
            skipped: named.map(|skipped| (skipped.path, skipped.reason)).collect(),
            more_skipped: more,
        }))
    }

    /// Stores the outcome while the lease is in force.
    async fn store(&self, outcome: Outcome, mut sent: Sent) {
        let text = match serde_json::to_string(&outcome) {
            Ok(text) if text.len() <= MAX_COMMAND_TEXT_BYTES => text,
            Ok(_) | Err(_) => r#"{"kind": "failed", "message": "what the command has left is too long"}"#.to_owned(),
        };
        while !self.running.is_lost() {
            self.send(&mut sent, MAX_OUTPUT_PIECE_BYTES).await;
            let (store, now) = (&self.host.store, self.host.clock.now());
            let piece = sent.next_piece();
            let last = (!piece.bytes.is_empty()).then_some(&piece);
            let stored = if sent.unsent.len() > MAX_OUTPUT_PIECE_BYTES {
                // The store is unavailable.
                None
            } else {
                Some(store.command_end(&self.lease, last, &text, now).await)
            };
            match stored {
                Some(Ok(true)) => return,
                Some(Ok(false)) => break,
                Some(Err(error)) if !error.is_transient() => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the outcome of a command can't be stored"
                    );
                    return;
                }
                Some(Err(_)) | None => sleep(PAUSE).await,
            }
        }
        tracing::warn!(
            command_id = %self.lease.key.command_id,
            "a command is left: its lease has expired, or nobody waits for it any more"
        );
    }
}

/// The output of a command that is not stored yet, and the number of the next piece.
#[derive(Debug, Default)]
struct Sent {
    unsent: BytesMut,
    position: u64,
}

impl Sent {
    fn next_piece(&self) -> OutputPiece {
        let length = self.unsent.len().min(MAX_OUTPUT_PIECE_BYTES);
        OutputPiece {
            position: self.position,
            bytes: Bytes::copy_from_slice(self.unsent.get(..length).unwrap_or_default()),
        }
    }

    fn has_sent(&mut self, piece: &OutputPiece) {
        self.position += 1;
        drop(self.unsent.split_to(piece.bytes.len()));
    }
}
