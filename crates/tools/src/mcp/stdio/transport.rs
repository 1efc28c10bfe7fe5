//! Messages over the standard input and output of a process.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::sink::{self, Sink};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::sink_stream::SinkStreamTransport;
use tokio::sync::mpsc::Receiver;
use tokio_util::codec::{AnyDelimiterCodec, Decoder as _};

use super::error_log::ErrorLog;
use super::link::ProcessLink;
use crate::mcp::incoming::{Incoming, Sent, first_byte, message};
use sandbox::{Output, ProcessInput};

/// The transport of a connection to a process.
pub(in crate::mcp) type StdioTransport = SinkStreamTransport<Input, BoxStream<'static, RxJsonRpcMessage<RoleClient>>>;

/// Writes messages. None fails: a process that can't be written to has ended, and its output is
/// read to the end, since that says why.
type Input = Pin<Box<dyn Sink<TxJsonRpcMessage<RoleClient>, Error = Infallible> + Send>>;

/// Reads the messages in the output of a process, line by line.
pub(super) struct Messages {
    output: Receiver<Output>,
    incoming: Incoming,
    errors: ErrorLog,
    link: Arc<ProcessLink>,
    /// Output that is not read yet.
    unread: BytesMut,
    lines: AnyDelimiterCodec,
}

/// Makes the transport of a process.
pub(super) fn transport(input: ProcessInput, messages: Messages) -> StdioTransport {
    let link = Arc::clone(&messages.link);
    let input: Input = Box::pin(sink::unfold(input, move |input, message| {
        write(input, message, Arc::clone(&link))
    }));
    let messages = stream::unfold(messages, |mut messages| async move {
        let read = messages.next_line().await?;
        Some((read, messages))
    });
    SinkStreamTransport::new(input, messages.flat_map(stream::iter).fuse().boxed())
}

async fn write(
    mut input: ProcessInput,
    message: TxJsonRpcMessage<RoleClient>,
    link: Arc<ProcessLink>,
) -> Result<ProcessInput, Infallible> {
    if matches!(message, TxJsonRpcMessage::<RoleClient>::Request(_)) {
        link.allow_response();
    }
    // A message can always be written as JSON.
    let mut line = serde_json::to_vec(&message).unwrap_or_default();
    line.push(b'\n');
    tokio::select! {
        biased;
        () = link.killed() => {}
        _ = input.write(&line) => {}
    }
    Ok(input)
}

impl Messages {
    pub(super) fn new(
        output: Receiver<Output>,
        incoming: Incoming,
        errors: ErrorLog,
        link: &Arc<ProcessLink>,
        max_line: usize,
    ) -> Self {
        Self {
            output,
            incoming,
            errors,
            link: Arc::clone(link),
            unread: BytesMut::new(),
            lines: AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), max_line),
        }
    }

    /// Reads the messages of the next line. There is none after the end of the process, or when it
    /// breaks the rules.
    async fn next_line(&mut self) -> Option<Vec<RxJsonRpcMessage<RoleClient>>> {
        loop {
            match self.lines.decode(&mut self.unread) {
                Ok(Some(line)) => return self.of_line(line).await,
                Ok(None) => {}
                Err(_) => {
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

    fn take(&mut self, output: &Output) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        if !self.link.count(bytes.len()) {
            self.link.fail("wrote more output than allowed");
        }
        match output {
            Output::Stdout(bytes) => self.unread.extend_from_slice(bytes),
            Output::Stderr(bytes) => self.errors.add(bytes),
        }
    }

    async fn of_line(&self, line: Bytes) -> Option<Vec<RxJsonRpcMessage<RoleClient>>> {
        let first = first_byte(&line);
        // The protocol allows nothing but messages, yet many programs greet and log here.
        if !matches!(first, Some(b'{' | b'[')) {
            return Some(Vec::new());
        }
        let mut messages = Vec::new();
        for json in self.incoming.messages(line).await {
            match self.incoming.read(json, None, known).await.and_then(|read| read) {
                Ok(message) => messages.extend(message),
                // A list of other objects may be a line of a log.
                Err(_) if first == Some(b'[') => {}
                Err(_) => {
                    self.link
                        .fail("wrote an object to its standard output that is no message of the protocol");
                    return None;
                }
            }
        }
        Some(messages)
    }
}

/// Converts JSON to a message, unless it is an unknown notification.
fn known(Sent { value, .. }: Sent) -> Result<Option<RxJsonRpcMessage<RoleClient>>, serde_json::Error> {
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    match message(value) {
        Err(_) if is_notification => Ok(None),
        message => message.map(Some),
    }
}
