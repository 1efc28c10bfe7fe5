//! Messages over the standard input and output of a process.

use std::io;
use std::sync::Arc;

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;

use super::error_log::ErrorLog;
use super::lines::{Lines, TooLong};
use super::link::ProcessLink;
use crate::json::Value;
use crate::sandbox::{Output, ProcessInput};

/// The transport of a connection to a process. Dropping it kills the process.
#[derive(Debug)]
pub(in crate::mcp) struct StdioTransport {
    pub(super) input: Arc<Mutex<ProcessInput>>,
    pub(super) output: Receiver<Output>,
    pub(super) lines: Lines,
    pub(super) errors: ErrorLog,
    pub(super) link: Arc<ProcessLink>,
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        // Writes that wait for the process end with this.
        self.link.kill();
    }
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
                written = writing => written,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => match Line::read(&line) {
                    Line::Message(message) => return Some(*message),
                    Line::Ignored => continue,
                    Line::Garbage => {
                        self.link
                            .fail("wrote an object to its standard output that is no message of the protocol");
                        return None;
                    }
                },
                Ok(None) => {}
                Err(TooLong) => {
                    self.link.fail("wrote a line that is longer than allowed");
                    return None;
                }
            }
            let output = tokio::select! {
                biased;
                () = self.link.killed() => return None,
                output = self.output.recv() => output?,
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

/// What a line is.
#[derive(Debug)]
enum Line {
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// No JSON object, such as a greeting, or a notification that nobody knows.
    Ignored,
    /// An object that is no message.
    Garbage,
}

impl Line {
    fn read(line: &[u8]) -> Self {
        // The protocol allows nothing but messages, yet many programs greet and log here.
        if !line.trim_ascii_start().starts_with(b"{") {
            return Self::Ignored;
        }
        if let Ok(message) = serde_json::from_slice(line) {
            return Self::Message(Box::new(message));
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(value) if value.get("method").is_some() && value.get("id").is_none() => Self::Ignored,
            _ => Self::Garbage,
        }
    }
}
