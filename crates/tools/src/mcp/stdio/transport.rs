//! Messages over the standard input and output of a process.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;

use super::error_log::ErrorLog;
use super::lines::{Lines, TooLong};
use super::link::ProcessLink;
use crate::mcp::incoming::{Incoming, Sent, first_byte, message};
use sandbox::{Output, ProcessInput};

/// The transport of a connection to a process.
pub(in crate::mcp) struct StdioTransport {
    pub(super) input: Arc<Mutex<ProcessInput>>,
    pub(super) output: Receiver<Output>,
    pub(super) lines: Lines,
    pub(super) incoming: Incoming,
    /// Reads the last line. It stays here if `receive` is dropped.
    pub(super) reading: Option<BoxFuture<'static, VecDeque<Part>>>,
    /// The parts of the last line that are not passed on yet.
    pub(super) parts: VecDeque<Part>,
    pub(super) errors: ErrorLog,
    pub(super) link: Arc<ProcessLink>,
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (input, link) = (Arc::clone(&self.input), Arc::clone(&self.link));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            if matches!(message, TxJsonRpcMessage::<RoleClient>::Request(_)) {
                link.allow_response();
            }
            let writing = async { input.lock().await.write(&line).await };
            tokio::select! {
                biased;
                () = link.killed() => Err(io::ErrorKind::BrokenPipe.into()),
                // A process that can't be written to has ended. Its output is read to the end,
                // since that says why.
                _ = writing => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(reading) = &mut self.reading {
                self.parts = reading.await;
                self.reading = None;
            }
            match self.parts.pop_front() {
                Some(Part::Message(message)) => return Some(*message),
                Some(Part::Ignored) => continue,
                Some(Part::Garbage) => {
                    self.link
                        .fail("wrote an object to its standard output that is no message of the protocol");
                    return None;
                }
                None => {}
            }
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.reading = Some(Box::pin(Part::read_line(line, self.incoming.clone())));
                    continue;
                }
                Ok(None) => {}
                Err(TooLong) => {
                    self.link.fail("wrote a line that is longer than allowed");
                    return None;
                }
            }
            let output = tokio::select! {
                biased;
                () = self.link.killed() => return None,
                output = self.output.recv() => output,
            };
            let Some(output) = output else {
                self.errors.finish();
                return None;
            };
            self.take(&output);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.link.kill();
        Ok(())
    }
}

impl StdioTransport {
    fn take(&mut self, output: &Output) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        if !self.link.count(bytes.len()) {
            self.link.fail("wrote more output than allowed");
        }
        match output {
            Output::Stdout(bytes) => self.lines.push(bytes),
            Output::Stderr(bytes) => self.errors.add(bytes),
        }
    }
}

/// A part of a line: the whole line, or an element of a batch.
#[derive(Debug)]
pub(super) enum Part {
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// A notification that nobody knows.
    Ignored,
    /// An object that is no message.
    Garbage,
}

impl Part {
    async fn read_line(line: Bytes, incoming: Incoming) -> VecDeque<Self> {
        let mut parts = VecDeque::new();
        let first = first_byte(&line);
        // The protocol allows nothing but messages, yet many programs greet and log here.
        if !matches!(first, Some(b'{' | b'[')) {
            return parts;
        }
        for message in incoming.messages(line).await {
            let read = incoming.read(message, None, Self::of).await;
            parts.push_back(read.unwrap_or(Self::Garbage));
        }
        // A list of other objects may be a line of a log.
        parts.retain(|part| first == Some(b'{') || !matches!(part, Self::Garbage));
        parts
    }

    fn of(Sent { value, .. }: Sent) -> Self {
        let is_notification = value.get("method").is_some() && value.get("id").is_none();
        match message(value) {
            Ok(message) => Self::Message(Box::new(message)),
            Err(_) if is_notification => Self::Ignored,
            Err(_) => Self::Garbage,
        }
    }
}
