//! Messages over the standard input and output of a process.

use std::collections::VecDeque;
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

/// Reads the messages in the output of a process.
pub(super) struct Messages {
    output: Receiver<Output>,
    incoming: Incoming,
    errors: ErrorLog,
    link: Arc<ProcessLink>,
    /// Output that is not read yet.
    unread: BytesMut,
    lines: AnyDelimiterCodec,
    /// The parts of the last line that are not passed on yet.
    parts: VecDeque<Part>,
}

/// Makes the transport of a process.
pub(super) fn transport(input: ProcessInput, messages: Messages) -> StdioTransport {
    let link = Arc::clone(&messages.link);
    let input: Input = Box::pin(sink::unfold(input, move |input, message| {
        write(input, message, Arc::clone(&link))
    }));
    let messages = stream::unfold(messages, |mut messages| async move {
        let message = messages.next().await?;
        Some((message, messages))
    });
    SinkStreamTransport::new(input, messages.fuse().boxed())
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
            parts: VecDeque::new(),
        }
    }

    /// Reads the next message. There is none after the end of the process, or when it breaks the
    /// rules.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
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
            match self.lines.decode(&mut self.unread) {
                Ok(Some(line)) => {
                    self.parts = Part::read_line(line, &self.incoming).await;
                    continue;
                }
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
}

/// A part of a line: the whole line, or an element of a batch.
#[derive(Debug)]
enum Part {
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// A notification that nobody knows.
    Ignored,
    /// An object that is no message.
    Garbage,
}

impl Part {
    async fn read_line(line: Bytes, incoming: &Incoming) -> VecDeque<Self> {
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
